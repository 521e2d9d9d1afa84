//! What kernels must forget by a commit.

use super::*;
use crate::store::NodeType;

#[test]
fn a_directory_is_restless_where_names_come_or_go_also_where_no_kernel_knows_absent_ones() {
    let mount = |id| Origin::Mount(MountId(id));
    let name = |name: &str| FileName::new(name.as_bytes()).unwrap();
    let appeared =
        |dir| Effect::Appeared { parent: Ino(dir), name: name("a"), node_type: NodeType::File };
    let told = Hub::default().forgotten(&[
        (mount(1), appeared(2)),
        (mount(1), appeared(2)),
        (mount(1), appeared(3)),
        (mount(2), appeared(3)),
    ]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.contains(&(Some(mount(1)), Invalidation::Restless(Ino(2)))), "{told:?}");
    assert!(told.contains(&(None, Invalidation::Restless(Ino(3)))), "{told:?}");
}
