//! What users are called.

use crate::names::AgentName;

/// The user's name where it fits the grammar of agents, else `uid-N`.
#[must_use]
pub fn user_name(uid: u32) -> AgentName {
    // Names of people in it may be of any encoding.
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    name_of(uid, &String::from_utf8_lossy(&passwd))
}

fn name_of(uid: u32, passwd: &str) -> AgentName {
    let named = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    let fallback = || AgentName::new(format!("uid-{uid}"));
    named
        .map(AgentName::new)
        .and_then(Result::ok)
        .or_else(|| fallback().ok())
        // PROOF: `uid-` and digits fit the grammar and the length of an agent's name.
        .expect("uid-N is an agent's name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_s_name_is_the_actor_s_where_it_can_be() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\n+weird:x:7:7::/:/bin/sh\nbob:x:1000:1000:::\n";
        assert_eq!(name_of(0, passwd).as_str(), "root");
        assert_eq!(name_of(1000, passwd).as_str(), "bob");
        assert_eq!(name_of(7, passwd).as_str(), "uid-7");
        assert_eq!(name_of(4_294_967_295, "").as_str(), "uid-4294967295");
    }
}
