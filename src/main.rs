//! The `workfs` program: see [`workfs::cli`].

fn main() -> std::process::ExitCode {
    workfs::cli::main()
}
