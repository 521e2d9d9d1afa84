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

/// The groups that the system's lists have a user in; none where they do not know the user.
#[must_use]
pub fn groups_of(uid: u32) -> Vec<u32> {
    let [passwd, group] = ["/etc/passwd", "/etc/group"].map(|file| {
        let list = std::fs::read(file).unwrap_or_default();
        String::from_utf8_lossy(&list).into_owned()
    });
    groups_by(uid, &passwd, &group)
}

fn groups_by(uid: u32, passwd: &str, group: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for user in passwd.lines() {
        let fields: Vec<&str> = user.split(':').collect();
        let [name, _, number, own, ..] = fields[..] else { continue };
        if number.parse() != Ok(uid) {
            continue;
        }
        found.extend(own.parse::<u32>());
        for group in group.lines() {
            let fields: Vec<&str> = group.split(':').collect();
            let [_, _, number, members, ..] = fields[..] else { continue };
            if members.split(',').any(|member| member == name) {
                found.extend(number.parse::<u32>());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_its_own_group_and_those_that_list_it() {
        let passwd =
            "root:x:0:0::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\nann:x:1002:100::/:/bin/sh\n";
        let group = "root:x:0:\nteam:x:50:ann,bob\nothers:x:51:bobby\nusers:x:100:\n";
        assert_eq!(groups_by(1001, passwd, group), [1001, 50]);
        assert_eq!(groups_by(1002, passwd, group), [100, 50]);
        assert_eq!(groups_by(7, passwd, group), [0_u32; 0]);
    }

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
