//! Extended attributes.

use crate::engine::change::stop::gone;
use crate::engine::{About, Command, Effect, Stop, Terms, Turn, XattrMode};
use crate::limits::{
    XATTR_BYTES_OF_ONE_MAX, XATTR_LIST_BYTES_MAX, XATTR_NAME_BYTES_MAX, XATTR_VALUE_BYTES_MAX,
};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::Class;

/// Sets an extended attribute.
#[derive(Clone, Debug)]
pub struct SetXattr {
    /// The node.
    pub ino: Ino,
    /// The attribute's name.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// How an existing one is treated.
    pub mode: XattrMode,
}

/// Removes an extended attribute.
#[derive(Clone, Debug)]
pub struct RemoveXattr {
    /// The node.
    pub ino: Ino,
    /// The attribute's name.
    pub name: Vec<u8>,
}

fn no_attribute(name: &[u8]) -> Refusal {
    let name = crate::names::printable(name);
    Refusal::new(Rule::NoAttribute, format!("no attribute `{name}`"), "list them with getfattr")
}

fn changed(turn: &mut Turn<'_>, ino: Ino) -> Result<(), Stop> {
    if let Some(mut node) = turn.txn.node(ino)? {
        node.ctime = turn.now;
        turn.txn.update_node(&node)?;
        turn.effect(Effect::Attr { ino, also_origin: true });
        if node.class != Class::Plain {
            turn.must_survive_power_loss();
        }
    }
    Ok(())
}

impl Command for SetXattr {
    type Out = ();

    fn operation(&self) -> &'static str {
        "setxattr"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        if self.name.len() > XATTR_NAME_BYTES_MAX || self.value.len() > XATTR_VALUE_BYTES_MAX {
            let reason = format!(
                "an attribute's name has at most {XATTR_NAME_BYTES_MAX} bytes and its value \
                 {XATTR_VALUE_BYTES_MAX}"
            );
            return Err(self.no_room(turn, reason, "store less in it"));
        }
        let node = turn.txn.node(self.ino)?.ok_or_else(gone)?;
        turn.require_node(&node)?;
        let there = turn.txn.xattr(self.ino, &self.name)?;
        match (self.mode, there.is_some()) {
            (XattrMode::Create, true) => {
                let name = crate::names::printable(&self.name);
                let reason = format!("the attribute `{name}` is there already");
                return Err(Refusal::new(Rule::Taken, reason, "replace it").into());
            }
            (XattrMode::Replace, false) => return Err(no_attribute(&self.name).into()),
            _ => {}
        }
        self.require_room(turn, there.as_deref())?;
        turn.txn.put_xattr(self.ino, &self.name, &self.value)?;
        changed(turn, self.ino)
    }
}

impl SetXattr {
    /// Refuses what would make the attributes of an inode too many, where it has more by that than it had.
    fn require_room(&self, turn: &Turn<'_>, there: Option<&[u8]>) -> Result<(), Stop> {
        let (names, values) = turn.txn.xattr_bytes(self.ino)?;
        let name = if there.is_some() { 0 } else { self.name.len() as u64 + 1 };
        let (had, has) = (there.unwrap_or_default().len() as u64, self.value.len() as u64);
        let too_many = name > 0 && names + name > XATTR_LIST_BYTES_MAX;
        if !too_many && (has <= had || values - had + has <= XATTR_BYTES_OF_ONE_MAX) {
            return Ok(());
        }
        let reason = format!(
            "a file's attributes have at most {XATTR_LIST_BYTES_MAX} bytes of names and \
             {XATTR_BYTES_OF_ONE_MAX} of values"
        );
        Err(self.no_room(turn, reason, "remove some of them (`setfattr -x NAME FILE`)"))
    }

    /// ENOSPC, as which it is answered, says nothing of a limit: `why` does.
    fn no_room(&self, turn: &Turn<'_>, reason: String, remedy: &str) -> Stop {
        let refusal = Refusal::new(Rule::AttributesRoom, reason, remedy);
        About::Node(self.ino).kept(turn.txn, refusal)
    }
}

impl Command for RemoveXattr {
    type Out = ();

    fn operation(&self) -> &'static str {
        "removexattr"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let node = turn.txn.node(self.ino)?.ok_or_else(gone)?;
        turn.require_node(&node)?;
        if !turn.txn.delete_xattr(self.ino, &self.name)? {
            return Err(no_attribute(&self.name).into());
        }
        changed(turn, self.ino)
    }
}
