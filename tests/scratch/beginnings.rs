//! What may still become valid is taken while it is being written.

use std::fs;
use std::io::Write;

use crate::harness::{Errno, Setup, close, save};

// P11.7 P3.3
#[test]
fn what_is_valid_in_the_end_is_taken_in_whatever_pieces() {
    let layout = r##"workspaces: []
checks: [{path: 'p/*.yaml', schema: s}]
schemas:
  - name: s
    text: '{"properties": {"steps": {"uniqueItems": true}, "x": {"anyOf": [
      {"properties": {"s": {"const": "in progress"}}}, {"properties": {"s": {"const": "done"}}}]},
      "a": {"oneOf": [{"type": "integer"}, {"type": "string"}], "allOf": [{"minimum": 0}]},
      "b": {"$ref": "#/properties/a/allOf/0"}}}'
"##;
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir p").success();
    for pieces in [
        ["steps:\n  - a: 1\n  - a: 1\n", "    b: 2\n"],
        ["x:\n  s: in\n", "    progress\n"],
        ["b: [1]\nz: 1\n", "a: 1\n"],
    ] {
        let mut file = fs::File::create(fixture.path("p/a.yaml")).unwrap();
        for piece in pieces {
            file.write_all(piece.as_bytes()).unwrap_or_else(|error| panic!("{piece}: {error}"));
        }
        close(file).unwrap();
    }
    assert_eq!(save(&fixture.path("p/a.yaml"), b"steps: [1, 1]\n"), Err(Errno::INVAL));
    fixture.fsck_clean();
}
