// Prints what chokidar tells of a directory and all below it, until its input ends.
const chokidar = require("chokidar");

const watcher = chokidar.watch(process.argv[2], { ignoreInitial: true });
watcher.on("all", (what, path) => console.log([what, path].join("\t")));
process.stdin.resume();
process.stdin.on("end", () => watcher.close().then(() => process.exit(0)));
