-- A store of schema 7, as workfs of 22 November 2026 (9ea0b00a) made it: three tasks (one claimed and saved, one
-- done), a draft, what was refused, files with links and attributes, one with versions. By `sqlite3 s.db .dump`.
PRAGMA application_id = 2003527283;
PRAGMA user_version = 7;
PRAGMA journal_mode = WAL;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('lease_clock','{"at":44727,"steady":5484717523335,"boot":"a15ed818-8d86-42f4-8f62-0b8b0e8e2a37","wall":1795837273488841772}');
CREATE TABLE nodes (
  ino    INTEGER PRIMARY KEY AUTOINCREMENT,
  type   INTEGER NOT NULL CHECK (type BETWEEN 0 AND 6),
  class  INTEGER NOT NULL CHECK (class BETWEEN 0 AND 2),
  mode   INTEGER NOT NULL,
  uid    INTEGER NOT NULL,
  gid    INTEGER NOT NULL,
  rdev   INTEGER NOT NULL,
  nlink  INTEGER NOT NULL CHECK (nlink >= 0),
  size   INTEGER NOT NULL CHECK (size >= 0),
  atime  INTEGER NOT NULL,
  mtime  INTEGER NOT NULL,
  ctime  INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0)
, quota INTEGER) STRICT;
INSERT INTO nodes VALUES(1,1,0,493,0,0,0,5,0,0,1795837273551540415,1795837273551540415,1,0,NULL);
INSERT INTO nodes VALUES(2,1,0,493,0,0,0,9,0,1795837273490143074,1795837273494499535,1795837273494499535,1,0,NULL);
INSERT INTO nodes VALUES(3,1,0,493,0,0,0,2,0,1795837273491489714,1795837273536022588,1795837273536022588,2,0,NULL);
INSERT INTO nodes VALUES(4,1,0,493,0,0,0,3,0,1795837273492232893,1795837273508783190,1795837273508783190,2,0,NULL);
INSERT INTO nodes VALUES(5,1,0,493,0,0,0,3,0,1795837273492609645,1795837273533082711,1795837273533082711,2,0,NULL);
INSERT INTO nodes VALUES(6,1,0,493,0,0,0,2,0,1795837273493120307,1795837273493120307,1795837273493120307,2,0,NULL);
INSERT INTO nodes VALUES(7,1,0,493,0,0,0,2,0,1795837273493579132,1795837273493579132,1795837273493579132,2,0,NULL);
INSERT INTO nodes VALUES(8,1,0,493,0,0,0,2,0,1795837273494088862,1795837273494088862,1795837273494088862,2,0,NULL);
INSERT INTO nodes VALUES(9,1,0,493,0,0,0,8,0,1795837273494499535,1795837273497674944,1795837273497674944,2,0,NULL);
INSERT INTO nodes VALUES(10,1,0,493,0,0,0,2,0,1795837273495021234,1795837273495021234,1795837273495021234,9,0,NULL);
INSERT INTO nodes VALUES(11,1,0,493,0,0,0,2,0,1795837273495585205,1795837273495585205,1795837273495585205,9,0,NULL);
INSERT INTO nodes VALUES(12,1,0,493,0,0,0,2,0,1795837273496135366,1795837273496135366,1795837273496135366,9,0,NULL);
INSERT INTO nodes VALUES(13,1,0,493,0,0,0,2,0,1795837273496654511,1795837273496654511,1795837273496654511,9,0,NULL);
INSERT INTO nodes VALUES(14,1,0,493,0,0,0,2,0,1795837273497137642,1795837273497137642,1795837273497137642,9,0,NULL);
INSERT INTO nodes VALUES(15,1,0,493,0,0,0,2,0,1795837273497674944,1795837273497674944,1795837273497674944,9,0,NULL);
INSERT INTO nodes VALUES(16,1,0,493,0,0,0,2,0,1795837273508783190,1795837273533649708,1795837273533649708,4,0,NULL);
INSERT INTO nodes VALUES(17,1,0,493,0,0,0,2,0,1795837273509689062,1795837273549272741,1795837273549272741,1,0,NULL);
INSERT INTO nodes VALUES(18,0,2,420,0,0,0,1,46,1795837273510288056,1795837273511524691,1795837273511524691,3,0,NULL);
INSERT INTO nodes VALUES(20,0,2,420,0,0,0,1,152,1795837273515155379,1795837273533649708,1795837273533649708,22,0,NULL);
INSERT INTO nodes VALUES(21,0,2,420,0,0,0,1,85,1795837273522492418,1795837273523575434,1795837273524013708,16,0,NULL);
INSERT INTO nodes VALUES(22,1,0,493,0,0,0,2,0,1795837273533082711,1795837273533649708,1795837273533649708,5,0,NULL);
INSERT INTO nodes VALUES(23,0,1,420,0,0,0,1,9,1795837273536022588,1795837273536500982,1795837273536500982,3,0,NULL);
INSERT INTO nodes VALUES(24,0,0,416,0,0,0,2,5,1795837273541818367,1795837273542106116,1795837273547768176,17,1,NULL);
INSERT INTO nodes VALUES(25,2,0,511,0,0,0,1,5,1795837273544940556,1795837273544940556,1795837273544940556,17,0,NULL);
INSERT INTO nodes VALUES(26,0,0,420,0,0,0,1,3145732,1795837273549272741,1795837273550003802,1795837273550003802,17,1,NULL);
INSERT INTO nodes VALUES(27,1,0,493,0,0,0,3,0,1795837273551540415,1795837273552051157,1795837273552051157,1,0,NULL);
INSERT INTO nodes VALUES(28,1,0,493,0,0,0,2,0,1795837273552051157,1795837273552797370,1795837273552797370,27,0,NULL);
INSERT INTO nodes VALUES(29,0,0,420,0,0,0,1,7,1795837273552797370,1795837273554721883,1795837273554721883,28,1,NULL);
CREATE TABLE entries (
  parent INTEGER NOT NULL REFERENCES nodes(ino),
  name   BLOB NOT NULL,
  ino    INTEGER NOT NULL,
  PRIMARY KEY (parent, name)
) STRICT, WITHOUT ROWID;
INSERT INTO entries VALUES(1,X'66696c6573',17);
INSERT INTO entries VALUES(1,X'73637261746368706164',27);
INSERT INTO entries VALUES(1,X'776f726b',2);
INSERT INTO entries VALUES(2,X'61726368697665',8);
INSERT INTO entries VALUES(2,X'61737369676e6564',4);
INSERT INTO entries VALUES(2,X'636f6c6c61626f726174696f6e',9);
INSERT INTO entries VALUES(2,X'64656164',6);
INSERT INTO entries VALUES(2,X'646f6e65',5);
INSERT INTO entries VALUES(2,X'667269646765',7);
INSERT INTO entries VALUES(2,X'696e626f78',3);
INSERT INTO entries VALUES(3,X'64726166742e79616d6c',23);
INSERT INTO entries VALUES(3,X'742d312e79616d6c',18);
INSERT INTO entries VALUES(4,X'626f62',16);
INSERT INTO entries VALUES(5,X'626f62',22);
INSERT INTO entries VALUES(9,X'61726368697665',15);
INSERT INTO entries VALUES(9,X'61737369676e6564',11);
INSERT INTO entries VALUES(9,X'64656164',13);
INSERT INTO entries VALUES(9,X'646f6e65',12);
INSERT INTO entries VALUES(9,X'667269646765',14);
INSERT INTO entries VALUES(9,X'696e626f78',10);
INSERT INTO entries VALUES(16,X'742d322e79616d6c',21);
INSERT INTO entries VALUES(17,X'68617264',24);
INSERT INTO entries VALUES(17,X'686f6c65',26);
INSERT INTO entries VALUES(17,X'6c696e6b',25);
INSERT INTO entries VALUES(17,X'706c61696e',24);
INSERT INTO entries VALUES(22,X'742d332e79616d6c',20);
INSERT INTO entries VALUES(27,X'696e666f',28);
INSERT INTO entries VALUES(28,X'6e6f7465732e6d64',29);
CREATE TABLE dirs (
  ino  INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  name BLOB NOT NULL
) STRICT;
INSERT INTO dirs VALUES(2,X'776f726b');
INSERT INTO dirs VALUES(3,X'696e626f78');
INSERT INTO dirs VALUES(4,X'61737369676e6564');
INSERT INTO dirs VALUES(5,X'646f6e65');
INSERT INTO dirs VALUES(6,X'64656164');
INSERT INTO dirs VALUES(7,X'667269646765');
INSERT INTO dirs VALUES(8,X'61726368697665');
INSERT INTO dirs VALUES(9,X'636f6c6c61626f726174696f6e');
INSERT INTO dirs VALUES(10,X'696e626f78');
INSERT INTO dirs VALUES(11,X'61737369676e6564');
INSERT INTO dirs VALUES(12,X'646f6e65');
INSERT INTO dirs VALUES(13,X'64656164');
INSERT INTO dirs VALUES(14,X'667269646765');
INSERT INTO dirs VALUES(15,X'61726368697665');
INSERT INTO dirs VALUES(16,X'626f62');
INSERT INTO dirs VALUES(17,X'66696c6573');
INSERT INTO dirs VALUES(22,X'626f62');
INSERT INTO dirs VALUES(27,X'73637261746368706164');
INSERT INTO dirs VALUES(28,X'696e666f');
CREATE TABLE symlinks (
  ino    INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  target BLOB NOT NULL
) STRICT;
INSERT INTO symlinks VALUES(25,X'706c61696e');
CREATE TABLE chunks (
  key  INTEGER PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;
INSERT INTO chunks VALUES(402653184,X'746578740a');
INSERT INTO chunks VALUES(436207664,X'656e640a');
INSERT INTO chunks VALUES(486539264,X'7465787420330a');
CREATE TABLE xattrs (
  ino   INTEGER NOT NULL REFERENCES nodes(ino) ON DELETE CASCADE,
  name  BLOB NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (ino, name)
) STRICT, WITHOUT ROWID;
INSERT INTO xattrs VALUES(24,X'757365722e66726f6d',X'6e6f76656d626572');
CREATE TABLE orphans (ino INTEGER PRIMARY KEY REFERENCES nodes(ino)) STRICT;
CREATE TABLE workspaces (
  key  INTEGER PRIMARY KEY AUTOINCREMENT,
  path BLOB NOT NULL UNIQUE,
  dir  INTEGER UNIQUE,
  kind TEXT NOT NULL
) STRICT;
INSERT INTO workspaces VALUES(1,X'776f726b',2,'task');
INSERT INTO workspaces VALUES(2,X'776f726b2f636f6c6c61626f726174696f6e',9,'task');
CREATE TABLE places (
  dir       INTEGER PRIMARY KEY,
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  relative  BLOB NOT NULL
) STRICT;
INSERT INTO places VALUES(2,1,X'');
INSERT INTO places VALUES(3,1,X'696e626f78');
INSERT INTO places VALUES(4,1,X'61737369676e6564');
INSERT INTO places VALUES(5,1,X'646f6e65');
INSERT INTO places VALUES(6,1,X'64656164');
INSERT INTO places VALUES(7,1,X'667269646765');
INSERT INTO places VALUES(8,1,X'61726368697665');
INSERT INTO places VALUES(9,2,X'');
INSERT INTO places VALUES(10,2,X'696e626f78');
INSERT INTO places VALUES(11,2,X'61737369676e6564');
INSERT INTO places VALUES(12,2,X'646f6e65');
INSERT INTO places VALUES(13,2,X'64656164');
INSERT INTO places VALUES(14,2,X'667269646765');
INSERT INTO places VALUES(15,2,X'61726368697665');
INSERT INTO places VALUES(16,1,X'61737369676e65642f626f62');
INSERT INTO places VALUES(22,1,X'646f6e652f626f62');
CREATE TABLE records (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  id        TEXT NOT NULL,
  standing  INTEGER NOT NULL CHECK (standing BETWEEN 0 AND 3),
  ino       INTEGER UNIQUE CHECK ((standing < 2) = (ino IS NOT NULL)),
  dir       INTEGER CHECK ((standing < 3) = (dir IS NOT NULL)),
  name      BLOB CHECK ((standing < 2) = (name IS NOT NULL)),
  state     TEXT NOT NULL,
  owner     TEXT,
  status    TEXT,
  attempt   INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  version_g INTEGER NOT NULL,
  last_g    INTEGER NOT NULL,
  trace     BLOB NOT NULL CHECK (length(trace) = 16), done       INTEGER NOT NULL DEFAULT 0, fit        INTEGER NOT NULL DEFAULT 0, open       INTEGER NOT NULL DEFAULT 0, priority   INTEGER NOT NULL DEFAULT 0, since      INTEGER NOT NULL DEFAULT 0, not_before INTEGER, ready      INTEGER NOT NULL DEFAULT 0, due        INTEGER, lease INTEGER, lapsed TEXT,
  UNIQUE (workspace, id)
) STRICT;
INSERT INTO records VALUES(1,1,'t-1',0,18,3,X'742d312e79616d6c','inbox',NULL,'inbox',0,1,14,14,X'f5875607c46521d682188e20d4f20960',0,1,0,0,1795837273511524691,NULL,1,NULL,NULL,NULL);
INSERT INTO records VALUES(2,1,'t-2',0,21,16,X'742d322e79616d6c','assigned','bob','assigned',1,3,18,18,X'a6c439c420dbf43e4c12eaa548391abe',0,1,0,0,1795837273514485479,NULL,0,NULL,NULL,NULL);
INSERT INTO records VALUES(3,1,'t-3',0,20,22,X'742d332e79616d6c','done','bob','done',1,3,21,21,X'9fa1c1898840c15aef7c8520cc878e93',1,1,0,0,1795837273515928643,NULL,0,NULL,NULL,NULL);
CREATE TABLE versions (
  g        INTEGER PRIMARY KEY,
  record   INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  before_g INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  content  BLOB NOT NULL
) STRICT;
INSERT INTO versions VALUES(14,1,1,0,1795837273511524691,X'69643a20742d310a7469746c653a2077616974730a7374617475733a20696e626f780a6167656e743a20626f620a');
INSERT INTO versions VALUES(15,2,1,0,1795837273514485479,X'69643a20742d320a7469746c653a2074616b656e0a7374617475733a20696e626f780a6167656e743a20626f620a');
INSERT INTO versions VALUES(16,3,1,0,1795837273515928643,X'69643a20742d330a7469746c653a2066696e69736865640a7374617475733a20696e626f780a6167656e743a20626f620a');
INSERT INTO versions VALUES(17,2,2,15,1795837273519008769,X'69643a20742d320a7469746c653a2074616b656e0a7374617475733a2061737369676e65640a61737369676e65645f61743a2027323032362d31312d32385430333a34313a31335a270a6167656e743a20626f620a');
INSERT INTO versions VALUES(18,2,3,17,1795837273524013708,X'69643a20742d320a7469746c653a2073617665640a7374617475733a2061737369676e65640a61737369676e65645f61743a2027323032362d31312d32385430333a34313a31335a270a6167656e743a20626f620a');
INSERT INTO versions VALUES(19,3,2,16,1795837273526649932,X'69643a20742d330a7469746c653a2066696e69736865640a7374617475733a2061737369676e65640a61737369676e65645f61743a2027323032362d31312d32385430333a34313a31335a270a6167656e743a20626f620a');
INSERT INTO versions VALUES(21,3,3,19,1795837273533649708,X'69643a20742d330a7469746c653a2066696e69736865640a7374617475733a20646f6e650a636f6d706c657465645f61743a2027323032362d31312d32385430333a34313a31335a270a61737369676e65645f61743a2027323032362d31312d32385430333a34313a31335a270a6167656e743a20626f620a726573756c743a0a202073756d6d6172793a2022616c6c206f66206974220a');
CREATE TABLE drafts (
  ino     INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  dir     INTEGER NOT NULL,
  name    BLOB NOT NULL,
  why     TEXT,
  content BLOB NOT NULL
) STRICT;
INSERT INTO drafts VALUES(23,3,X'64726166742e79616d6c','{"rule":"W010","reason":"a `[` or `{` is opened and never closed","remedy":"Close it, or quote the value.","place":{"line":1,"column":9}}',X'7374617475733a205b');
CREATE TABLE events (
  g        INTEGER PRIMARY KEY,
  before_g INTEGER NOT NULL,
  end      INTEGER NOT NULL,
  line     TEXT NOT NULL
) STRICT;
INSERT INTO events VALUES(1,0,471,'{"actor":"root","at":"2026-11-28T03:41:13.490143074Z","event":"registered","g":1,"kind":"task","payload":{"path":"work"},"payload_hash":"028eb7d794fb435dcdf4a551cb75f31c333315486d1a2979d1e51374844426ac","pid":5577,"prev_event_hash":"0000000000000000000000000000000000000000000000000000000000000000","role":"operator","schema":"workfs.event.v1","span_id":"0e77d18e5bffe311","trace_id":"b306f282ff83aeeb8895d7b0ac1c2481","uid":0,"vector_clock":{"d1":1},"workspace":"work"}');
INSERT INTO events VALUES(2,0,948,'{"actor":"root","at":"2026-11-28T03:41:13.491489714Z","event":"registered","g":2,"kind":"task","payload":{"path":"work/inbox"},"payload_hash":"22a8e17f29bea79009c8eac812ee07b6c939e0f083d52991e8bc5aa14ac95fd4","pid":5577,"prev_event_hash":"d087f0e727d24c000f9c4f936b014994fbe4d55efa4869862a8db258ca13bf5b","role":"operator","schema":"workfs.event.v1","span_id":"6ada6d447b3a93d1","trace_id":"56f6527af80f04c7e82c1dd11335a765","uid":0,"vector_clock":{"d1":2},"workspace":"work"}');
INSERT INTO events VALUES(3,0,1424,'{"actor":"root","at":"2026-11-28T03:41:13.492609645Z","event":"registered","g":3,"kind":"task","payload":{"path":"work/done"},"payload_hash":"28b5804c79e178b335ce04921aabfbbdf53d69c633069f8a0da04e7324aef349","pid":5577,"prev_event_hash":"b2bb5362fe023ba0198aeaf73ea6f9a7a94bd6e6229b17b102009b0a488d2db2","role":"operator","schema":"workfs.event.v1","span_id":"b6dc0728b2bb67d2","trace_id":"386e38ad0436fda65e77213f4039efbf","uid":0,"vector_clock":{"d1":3},"workspace":"work"}');
INSERT INTO events VALUES(4,0,1900,'{"actor":"root","at":"2026-11-28T03:41:13.493120307Z","event":"registered","g":4,"kind":"task","payload":{"path":"work/dead"},"payload_hash":"fad034b41ffc2fc89e31d4c7acc65e1c0f48c5c25c1d1e3f42276075d26f220d","pid":5577,"prev_event_hash":"3fc890071fccaa3b3b01d6e1ca4c8cd856bfd785379c27a49674eedeb68e8b3b","role":"operator","schema":"workfs.event.v1","span_id":"a1dac0e6178ba824","trace_id":"85c18688f5cc49ed84c2deefa6f4be6a","uid":0,"vector_clock":{"d1":4},"workspace":"work"}');
INSERT INTO events VALUES(5,0,2378,'{"actor":"root","at":"2026-11-28T03:41:13.493579132Z","event":"registered","g":5,"kind":"task","payload":{"path":"work/fridge"},"payload_hash":"895441a8571afb95cbf829f58c526a3a42e0740a4ff7c2cb602ac9b56d2dad92","pid":5577,"prev_event_hash":"756deae2e5a8e8c84d122b84115fb715ab98e6f36079251beedfb06dc815d54e","role":"operator","schema":"workfs.event.v1","span_id":"b0f0824ea88298cd","trace_id":"4d38bf47d8dce30ff7f07c9619cee0f6","uid":0,"vector_clock":{"d1":5},"workspace":"work"}');
INSERT INTO events VALUES(6,0,2857,'{"actor":"root","at":"2026-11-28T03:41:13.494088862Z","event":"registered","g":6,"kind":"task","payload":{"path":"work/archive"},"payload_hash":"f624b0081c0132efb1435bcbdd50dcc94d6be984f6eeaefc415c6ba95d14208c","pid":5577,"prev_event_hash":"8fdabd0eebba499333f9fdf8279bd340e21c9b2e352951785f51ff6a40415b2f","role":"operator","schema":"workfs.event.v1","span_id":"8bb0ec4ceda4fc22","trace_id":"92e66cb4c88a2a8b26807db0a1337f30","uid":0,"vector_clock":{"d1":6},"workspace":"work"}');
INSERT INTO events VALUES(7,0,3356,'{"actor":"root","at":"2026-11-28T03:41:13.494499535Z","event":"registered","g":7,"kind":"task","payload":{"path":"work/collaboration"},"payload_hash":"3153214506bfde2a0579b42868726a3cec4b2cc695235373589ed5f2e4fc42f7","pid":5577,"prev_event_hash":"1dd30b83a110a04db4233ddd5db765c03858ebe1db8e09341b4d1d1dd24d9da1","role":"operator","schema":"workfs.event.v1","span_id":"75e238abb0df6185","trace_id":"23edfb085fcd14ecd15a1c00f19d2c19","uid":0,"vector_clock":{"d1":7},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(8,0,3861,'{"actor":"root","at":"2026-11-28T03:41:13.495021234Z","event":"registered","g":8,"kind":"task","payload":{"path":"work/collaboration/inbox"},"payload_hash":"72059e9cff7e987ad4144f1cbb3403c0758e0d53f22b71bf40030d6d596ed58c","pid":5577,"prev_event_hash":"a038e480964b2049d983a170383b5dc6914fc6bfc531aa259ce24a4d23c40075","role":"operator","schema":"workfs.event.v1","span_id":"8975fe8645a28e2d","trace_id":"6e81392f24f8ef7466d38b30a9da78d8","uid":0,"vector_clock":{"d1":8},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(9,0,4365,'{"actor":"root","at":"2026-11-28T03:41:13.496135366Z","event":"registered","g":9,"kind":"task","payload":{"path":"work/collaboration/done"},"payload_hash":"4e93539ff2aafabcd72261b3713f59a53496a22af545c267347c9df89543b828","pid":5577,"prev_event_hash":"4126ca4021cc20ffa2cd9012954987a2b30f680d951f0356d7f448e675a2d42f","role":"operator","schema":"workfs.event.v1","span_id":"6eec13f8110cc18b","trace_id":"681aec7e917f6567c0484d51ad1472d4","uid":0,"vector_clock":{"d1":9},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(10,0,4871,'{"actor":"root","at":"2026-11-28T03:41:13.496654511Z","event":"registered","g":10,"kind":"task","payload":{"path":"work/collaboration/dead"},"payload_hash":"ed517ad4f5d2e179afc38e1acc0ee66f0aeb65653a8820acdaa847c6b9165a56","pid":5577,"prev_event_hash":"efa47c8b6940d0ef698ab9d24f30efd95723108b8f71e1744b88c8a821c6d1f6","role":"operator","schema":"workfs.event.v1","span_id":"796c4f26607b2601","trace_id":"3ef368f010ea6d25b0b5f7684c719b7b","uid":0,"vector_clock":{"d1":10},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(11,0,5379,'{"actor":"root","at":"2026-11-28T03:41:13.497137642Z","event":"registered","g":11,"kind":"task","payload":{"path":"work/collaboration/fridge"},"payload_hash":"46eb3499d41afb425f3dc47254aa39172d95a3135ee0d189e623fc868d783ee0","pid":5577,"prev_event_hash":"e2cae2bedbc0068f7c7d1e87494d4e56d333f9d295145839702a657cc9d2605a","role":"operator","schema":"workfs.event.v1","span_id":"596544e229978cfe","trace_id":"9335ccb3072ab5498bd998e3a4c64157","uid":0,"vector_clock":{"d1":11},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(12,0,5888,'{"actor":"root","at":"2026-11-28T03:41:13.497674944Z","event":"registered","g":12,"kind":"task","payload":{"path":"work/collaboration/archive"},"payload_hash":"0213a20706a1a4602470fa815f7140d8e2c64a0095409344465a42afa349a8b2","pid":5577,"prev_event_hash":"e707b1de12434bbec6023a798fe7aa432952e402f2949673602b982699104eee","role":"operator","schema":"workfs.event.v1","span_id":"1c603363de25c77a","trace_id":"73e65e07c78844433c433106c90e836c","uid":0,"vector_clock":{"d1":12},"workspace":"work/collaboration"}');
INSERT INTO events VALUES(13,0,6384,'{"actor":"root","at":"2026-11-28T03:41:13.508783190Z","event":"registered","g":13,"kind":"task","mount":1,"payload":{"path":"work/assigned/bob"},"payload_hash":"63de88e3c31f2ab951a81f896fe7b69a1020d905f086b54c3d72c96372f0e7f7","pid":5591,"prev_event_hash":"1738bb30ff558494eab47ba50ac33b378a129d947f27f94c4d09b7eb7e2fe609","role":"operator","schema":"workfs.event.v1","span_id":"93dacef7252ee5ac","trace_id":"9a3ff4d1fc73de75ed6a4eca0eb3d511","uid":0,"vector_clock":{"d1":13},"workspace":"work"}');
INSERT INTO events VALUES(14,0,7030,'{"actor":"root","at":"2026-11-28T03:41:13.511524691Z","event":"created","g":14,"id":"t-1","kind":"task","mount":1,"payload":{"attempt":0,"content_sha256":"769163686b62e42163ab906ba2f12572b4e340ba090387f2a73f7eb37d11e32d","path":"work/inbox/t-1.yaml","size":46,"state":"inbox"},"payload_hash":"705102bd9442041f327ae62dcb87d39b0d148d8f8edc05b5c732eb680244f61f","pid":5572,"prev_event_hash":"c1465196bede209d7cfb9b205f82c49b0362126874bcffdac390eb0bfbe12ef7","role":"operator","schema":"workfs.event.v1","span_id":"2090a7fc0c00f3b5","trace_id":"f5875607c46521d682188e20d4f20960","uid":0,"vector_clock":{"d1":14},"version_after":1,"workspace":"work"}');
INSERT INTO events VALUES(15,0,7676,'{"actor":"root","at":"2026-11-28T03:41:13.514485479Z","event":"created","g":15,"id":"t-2","kind":"task","mount":1,"payload":{"attempt":0,"content_sha256":"92b2061ae4ddef71f21808bd5f98b46e9c599be437831cb869a9afa225bfcdd1","path":"work/inbox/t-2.yaml","size":46,"state":"inbox"},"payload_hash":"0cc2b8c7319cf5895f8e0cbcca22e65fcd58dcdf21afb4b5622fa1589019260b","pid":5572,"prev_event_hash":"62beb991e920a8981f606331d115a7c091fe34cf2dc5ad708f4e6ea8a2ac297a","role":"operator","schema":"workfs.event.v1","span_id":"f157b56bddfbb66d","trace_id":"a6c439c420dbf43e4c12eaa548391abe","uid":0,"vector_clock":{"d1":15},"version_after":1,"workspace":"work"}');
INSERT INTO events VALUES(16,0,8322,'{"actor":"root","at":"2026-11-28T03:41:13.515928643Z","event":"created","g":16,"id":"t-3","kind":"task","mount":1,"payload":{"attempt":0,"content_sha256":"88b04535d349b81d891b27acad7fadc07f86869900ce83a3971bbc7566496059","path":"work/inbox/t-3.yaml","size":49,"state":"inbox"},"payload_hash":"33717a5b2e47500a31af64cb39dfa1ad49910b4b157f5ec0d622cde00c62956f","pid":5572,"prev_event_hash":"0bf15db2ab538cc34e2218667694ceccf05774dfaaf00e4ec462317610e4b83c","role":"operator","schema":"workfs.event.v1","span_id":"877fda38a5cc7d22","trace_id":"9fa1c1898840c15aef7c8520cc878e93","uid":0,"vector_clock":{"d1":16},"version_after":1,"workspace":"work"}');
INSERT INTO events VALUES(17,15,9026,'{"actor":"root","at":"2026-11-28T03:41:13.519008769Z","event":"claimed","g":17,"id":"t-2","kind":"task","mount":1,"payload":{"attempt":1,"content_sha256":"bbc21a3a6b0d54c014741557d89e311f8bfdc899506aa9685fdb53b3808ad2fc","from":"inbox","owner":"bob","path":"work/assigned/bob/t-2.yaml","size":85,"state":"assigned"},"payload_hash":"d536ccb0d77ec81221899655e0b75b3cffba525d371cc2d2ce2b44e84e28ae1d","pid":5592,"prev_event_hash":"c0899b1940d10c0e12c7b9c8f2fc10289b97d60f92e32fa51398d527de5fbe96","role":"operator","schema":"workfs.event.v1","span_id":"f3435673fa1bf6b1","trace_id":"a6c439c420dbf43e4c12eaa548391abe","uid":0,"vector_clock":{"d1":17},"version_after":2,"version_before":1,"workspace":"work"}');
INSERT INTO events VALUES(18,17,9713,'{"actor":"root","at":"2026-11-28T03:41:13.524013708Z","event":"saved","g":18,"id":"t-2","kind":"task","mount":1,"payload":{"attempt":1,"content_sha256":"b7cecefaac1e5551aef9e05a4b1bedc49044a02c873e1947486bb2ffd2340c18","owner":"bob","path":"work/assigned/bob/t-2.yaml","size":85,"state":"assigned"},"payload_hash":"336ca939b21001e0c03763d47582c10a413b2aba072ba4f0e1cbff7f95463f26","pid":5593,"prev_event_hash":"43864e3eae591904d18d77b4bbfaf6ac387e32a1c0f0730cc0b5a23596637b43","role":"operator","schema":"workfs.event.v1","span_id":"cdc4f164df6bbaf5","trace_id":"a6c439c420dbf43e4c12eaa548391abe","uid":0,"vector_clock":{"d1":18},"version_after":3,"version_before":2,"workspace":"work"}');
INSERT INTO events VALUES(19,16,10417,'{"actor":"root","at":"2026-11-28T03:41:13.526649932Z","event":"claimed","g":19,"id":"t-3","kind":"task","mount":1,"payload":{"attempt":1,"content_sha256":"5c326af26cb7592d6dbcfabbf438a98de4f6b8aa8b4685294364cf798d2b840f","from":"inbox","owner":"bob","path":"work/assigned/bob/t-3.yaml","size":88,"state":"assigned"},"payload_hash":"566cdb06cf442a45902fa37fcd4edfaa439347a24ff8e2f43b009958b9d1dbc8","pid":5594,"prev_event_hash":"fb62c43008ddbef1468fb47a84e8485109207590197e0bd691b4b34547d13d93","role":"operator","schema":"workfs.event.v1","span_id":"0b4b914bdc0ef78a","trace_id":"9fa1c1898840c15aef7c8520cc878e93","uid":0,"vector_clock":{"d1":19},"version_after":2,"version_before":1,"workspace":"work"}');
INSERT INTO events VALUES(20,0,10899,'{"actor":"root","at":"2026-11-28T03:41:13.533082711Z","event":"registered","g":20,"kind":"task","payload":{"path":"work/done/bob"},"payload_hash":"f3f414ba49e2915821a99a91ca81f9196744e435fa59d1da9c97b2f4b1157862","pid":5595,"prev_event_hash":"21da31c05ecd3d747436dd8e03118e39d1bb374c1956c9890251fd8b92c57ec8","role":"operator","schema":"workfs.event.v1","span_id":"b117cc0169a9518c","trace_id":"cb99dd6ce5cb16521472ad160986be3b","uid":0,"vector_clock":{"d1":20},"workspace":"work"}');
INSERT INTO events VALUES(21,19,11591,'{"actor":"root","at":"2026-11-28T03:41:13.533649708Z","event":"completed","g":21,"id":"t-3","kind":"task","payload":{"attempt":1,"content_sha256":"e8cbf37c2acffee94b6395266dad6cfa84cdba59491c47e7ad493628fe4847d7","from":"assigned","owner":"bob","path":"work/done/bob/t-3.yaml","size":152,"state":"done"},"payload_hash":"ea081e2f3e0ada583c01d79677413a5f5bf5b8afdc55bee8996ad5896f2d4adb","pid":5595,"prev_event_hash":"020eadcb8b101427e1700787a1dfa039c91721902d330fb4cd195fbce7bea828","role":"operator","schema":"workfs.event.v1","span_id":"cf7c8812dc046367","trace_id":"9fa1c1898840c15aef7c8520cc878e93","uid":0,"vector_clock":{"d1":21},"version_after":3,"version_before":2,"workspace":"work"}');
INSERT INTO events VALUES(22,0,12102,'{"actor":"root","at":"2026-11-28T03:41:13.536500982Z","event":"drafted","g":22,"kind":"task","mount":1,"payload":{"path":"work/inbox/draft.yaml","rule":"W010"},"payload_hash":"c7f6816781e66b2db466ea845770e17098340cea35d82a6a9bb87cbf8b3eeb50","pid":5572,"prev_event_hash":"9ee5575533ff742f50c446d66a0181806418cec2350736ccacfbf95c76042db1","role":"operator","schema":"workfs.event.v1","span_id":"88293b7e63c1b54c","trace_id":"05e0c87a1e973924193a869f745cddcb","uid":0,"vector_clock":{"d1":22},"workspace":"work"}');
INSERT INTO events VALUES(23,0,12593,'{"actor":"root","at":"2026-11-28T03:41:13.552051157Z","event":"created","g":23,"kind":"file","mount":1,"payload":{"path":"scratchpad/info","type":"directory"},"payload_hash":"3acedfc7eb1c9d6cb3407b62ad1ad9e7f380b7a71cd6f7322062d2cff87d7778","pid":5604,"prev_event_hash":"c4156253d8b43dd31846ce22251afc724c04fdf75b46e004fe5ab55ec718cbd7","role":"operator","schema":"workfs.event.v1","span_id":"4f284dc25971d245","trace_id":"5718b7c4512545de46040242d0109859","uid":0,"vector_clock":{"d1":23}}');
INSERT INTO events VALUES(24,0,13165,'{"actor":"root","at":"2026-11-28T03:41:13.553522713Z","event":"saved","g":24,"kind":"file","mount":1,"payload":{"content_sha256":"a487c4db4bc477192b7f8fb86be06471630644beb737a1680bacbe9a27f2bbee","path":"scratchpad/info/notes.md","size":7},"payload_hash":"2e16856b56603f4863333a264789e9a09bd39a12903a4b40bfed9c2f1cf76298","pid":5572,"prev_event_hash":"53d3ae632be239c2f93f02f183fb9c966c9549c108100624eaa4af5489356c1c","role":"operator","schema":"workfs.event.v1","span_id":"6ab938b223a81808","trace_id":"dc0bd919cf175998aa38a8b4d4a8418d","uid":0,"vector_clock":{"d1":24}}');
INSERT INTO events VALUES(25,24,13737,'{"actor":"root","at":"2026-11-28T03:41:13.554270970Z","event":"saved","g":25,"kind":"file","mount":1,"payload":{"content_sha256":"520aa5064f55dffa7653bcffc8c0c8332e9d8499e434f14933644fc32fa14b2d","path":"scratchpad/info/notes.md","size":7},"payload_hash":"3c67faa44eebd9ded70ec3ff0d12656a065b6635ff85c7f5d1efa95fec39ff8f","pid":5572,"prev_event_hash":"de3ada7dc41dbdc327cf1379a21ba621ac3e74c34f90b22010a12963fdb737ac","role":"operator","schema":"workfs.event.v1","span_id":"4d1f8686186bd592","trace_id":"bab816665b5a36e9cb07b993fe54d17c","uid":0,"vector_clock":{"d1":25}}');
INSERT INTO events VALUES(26,25,14309,'{"actor":"root","at":"2026-11-28T03:41:13.554910303Z","event":"saved","g":26,"kind":"file","mount":1,"payload":{"content_sha256":"4ca7bb110cbfea07176b2e530a0cd421f3c77d781f84f0aebb20ccf6729b3d9c","path":"scratchpad/info/notes.md","size":7},"payload_hash":"5a7441323ac0bfeeeeb062e60b52e9bfc1decc3e0542faf81fb1542c0a767d3c","pid":5572,"prev_event_hash":"8f723263cdf22e065d603f58a637a1451011bc323925f2d0dfdc4ba01a762b7a","role":"operator","schema":"workfs.event.v1","span_id":"ac54d8894c4ecc07","trace_id":"1fd297c3d775b69ff0babf7dd488c9ba","uid":0,"vector_clock":{"d1":26}}');
CREATE TABLE refusals (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,
  at        INTEGER NOT NULL,
  mount     INTEGER,
  uid       INTEGER NOT NULL,
  pid       INTEGER NOT NULL,
  operation TEXT NOT NULL,
  path      BLOB NOT NULL,
  errno     TEXT NOT NULL,
  why       TEXT NOT NULL,
  rejected  BLOB
, actor TEXT NOT NULL DEFAULT 'unknown') STRICT;
INSERT INTO refusals VALUES(1,1795837273536500982,1,0,5572,'save',X'776f726b2f696e626f782f64726166742e79616d6c','EINVAL','{"rule":"W010","reason":"a `[` or `{` is opened and never closed","remedy":"Close it, or quote the value.","place":{"line":1,"column":9}}',X'7374617475733a205b','root');
INSERT INTO refusals VALUES(2,1795837273541085744,1,0,5598,'write',X'776f726b2f61737369676e65642f626f622f742d322e79616d6c','EINVAL','{"rule":"W011","reason":"`status` is `nonsense`, not one of new, inbox, assigned, in_progress, blocked, done, error","remedy":"set `status` to one of new, inbox, assigned, in_progress, blocked, done, error","place":{"line":3,"column":9}}',X'69643a20742d320a7469746c653a2073617665640a7374617475733a206e6f6e73656e73650a6e6f6e73656e73655f61743a2027323032362d31312d32385430333a34313a31335a270a6167656e743a20626f620a','root');
CREATE TABLE edges (
  workspace  INTEGER NOT NULL REFERENCES workspaces(key),
  dependency TEXT NOT NULL,
  dependant  TEXT NOT NULL,
  sides      INTEGER NOT NULL CHECK (sides BETWEEN 1 AND 3),
  PRIMARY KEY (workspace, dependency, dependant)
) STRICT, WITHOUT ROWID;
CREATE TABLE agents (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  uid  INTEGER UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE file_names (
  ino  INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  dir  INTEGER NOT NULL,
  name BLOB NOT NULL
) STRICT;
INSERT INTO file_names VALUES(29,28,X'6e6f7465732e6d64');
CREATE TABLE histories (
  key      INTEGER PRIMARY KEY AUTOINCREMENT,
  path     BLOB NOT NULL UNIQUE,
  last_g   INTEGER NOT NULL,
  versions INTEGER NOT NULL CHECK (versions >= 0),
  bytes    INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
INSERT INTO histories VALUES(1,X'736372617463687061642f696e666f',23,0,0);
INSERT INTO histories VALUES(2,X'736372617463687061642f696e666f2f6e6f7465732e6d64',26,3,21);
CREATE TABLE file_versions (
  g       INTEGER PRIMARY KEY,
  history INTEGER NOT NULL REFERENCES histories(key),
  at      INTEGER NOT NULL,
  sha256  BLOB NOT NULL CHECK (length(sha256) = 32),
  content BLOB NOT NULL
) STRICT;
INSERT INTO file_versions VALUES(24,2,1795837273553522713,X'a487c4db4bc477192b7f8fb86be06471630644beb737a1680bacbe9a27f2bbee',X'7465787420310a');
INSERT INTO file_versions VALUES(25,2,1795837273554270970,X'520aa5064f55dffa7653bcffc8c0c8332e9d8499e434f14933644fc32fa14b2d',X'7465787420320a');
INSERT INTO file_versions VALUES(26,2,1795837273554910303,X'4ca7bb110cbfea07176b2e530a0cd421f3c77d781f84f0aebb20ccf6729b3d9c',X'7465787420330a');
CREATE TABLE lock_leases (
  ino   INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  until INTEGER NOT NULL
) STRICT;
CREATE TABLE leases (
  record  INTEGER PRIMARY KEY REFERENCES records(key),
  attempt INTEGER NOT NULL,
  ttl     INTEGER NOT NULL CHECK (ttl > 0),
  until   INTEGER NOT NULL,
  warned  INTEGER NOT NULL
) STRICT;
INSERT INTO leases VALUES(2,1,14400000000000,14400030211394,0);
CREATE TABLE quotas (
  dir    INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  bytes  INTEGER NOT NULL,
  inodes INTEGER NOT NULL
) STRICT;
CREATE TABLE follow_ups (
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  previous  TEXT NOT NULL,
  agent     TEXT NOT NULL,
  PRIMARY KEY (workspace, previous, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE leader (
  only   INTEGER PRIMARY KEY CHECK (only = 1),
  holder TEXT NOT NULL,
  fence  INTEGER NOT NULL,
  until  INTEGER NOT NULL
) STRICT;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('nodes',29);
INSERT INTO sqlite_sequence VALUES('workspaces',2);
INSERT INTO sqlite_sequence VALUES('records',3);
INSERT INTO sqlite_sequence VALUES('refusals',2);
INSERT INTO sqlite_sequence VALUES('histories',2);
CREATE INDEX places_workspace ON places (workspace);
CREATE INDEX refusals_path ON refusals (path);
CREATE INDEX records_ready ON records (workspace, priority, since) WHERE ready = 1;
CREATE INDEX records_due ON records (due) WHERE due IS NOT NULL;
CREATE INDEX edges_dependant ON edges (workspace, dependant);
CREATE INDEX file_versions_history ON file_versions (history, g);
CREATE INDEX lock_leases_until ON lock_leases (until);
COMMIT;
