//! The line: those who wait to take a record as soon as one is ready, the first come at its head.
//!
//! What must stay true: each record that becomes ready wakes one of those who wait for it, not
//! all; who joins before it looks, or in the writer's answer to its look, hears of every record
//! that becomes ready later. Those who only look, and take nothing, watch instead: they must not
//! use up what somebody else is to be woken for. Deliberately not here: whether the record is still
//! to be had when the one who was woken looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use crate::numbers::WorkspaceKey;

/// Called when a record became ready. Must not block: the writer calls it.
type Wake = Box<dyn FnOnce(WorkspaceKey) + Send>;

/// Those who wait.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    /// By what they wait for, and then in the order in which they came. There are few different wishes.
    waiting: HashMap<Wish, BTreeMap<u64, Wake>>,
    watching: Vec<Sender<WorkspaceKey>>,
}

/// The workspaces for whose records somebody waits; any of them if that is left open.
pub type Wish = Option<Arc<[WorkspaceKey]>>;

/// A place in the line. It is kept over a wake-up that brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    wish: Wish,
    number: u64,
}

impl Line {
    /// A place at the end of the line. Nobody waits at it before [`Line::wait`].
    #[must_use]
    pub fn place(&self, wish: Wish) -> Place {
        let mut state = self.state.lock();
        state.last += 1;
        Place { wish, number: state.last }
    }

    /// Waits at a place: `wake` is called once, unless the place is left before.
    pub fn wait(&self, place: &Place, wake: impl FnOnce(WorkspaceKey) + Send + 'static) {
        let mut state = self.state.lock();
        let waiting = state.waiting.entry(place.wish.clone()).or_default();
        waiting.insert(place.number, Box::new(wake));
    }

    /// Waits no longer; says whether it was still waiting.
    pub fn leave(&self, place: &Place) -> bool {
        self.state.lock().take(place).is_some()
    }

    /// How many wait.
    pub fn length(&self) -> usize {
        self.state.lock().waiting.values().map(BTreeMap::len).sum()
    }

    /// Hears of every record that becomes ready, by its workspace.
    #[must_use]
    pub fn watch(&self) -> Receiver<WorkspaceKey> {
        let (tell, told) = unbounded();
        self.state.lock().watching.push(tell);
        told
    }

    /// A record of `workspace` became ready, or is no longer being written.
    pub fn call(&self, workspace: WorkspaceKey) {
        self.state.lock().watching.retain(|watching| watching.send(workspace).is_ok());
        self.pass_on(workspace);
    }

    /// Wakes the first in the line: also for who was woken and needs it no more.
    pub fn pass_on(&self, workspace: WorkspaceKey) {
        self.wake_from(workspace, 0);
    }

    /// Wakes the first behind a place, for who was woken there, takes nothing and waits on.
    pub fn pass_behind(&self, place: &Place, workspace: WorkspaceKey) {
        self.wake_from(workspace, place.number + 1);
    }

    fn wake_from(&self, workspace: WorkspaceKey, number: u64) {
        let first = {
            let mut state = self.state.lock();
            let first = state.first(workspace, number);
            first.and_then(|place| state.take(&place))
        };
        if let Some(wake) = first {
            wake(workspace);
        }
    }
}

impl State {
    /// Who has waited longest for a record of this workspace, of those from this number.
    fn first(&self, workspace: WorkspaceKey, from: u64) -> Option<Place> {
        let wanted = |wish: &Wish| wish.as_ref().is_none_or(|some| some.contains(&workspace));
        let heads = self.waiting.iter().filter(|(wish, _)| wanted(wish));
        let heads =
            heads.filter_map(|(wish, waiting)| Some((*waiting.range(from..).next()?.0, wish)));
        let (number, wish) = heads.min_by_key(|(number, _)| *number)?;
        Some(Place { wish: wish.clone(), number })
    }

    fn take(&mut self, place: &Place) -> Option<Wake> {
        let waiting = self.waiting.get_mut(&place.wish)?;
        let wake = waiting.remove(&place.number);
        if waiting.is_empty() {
            self.waiting.remove(&place.wish);
        }
        wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkspaceKey = WorkspaceKey(1);
    const B: WorkspaceKey = WorkspaceKey(2);

    #[test]
    fn each_record_wakes_one_the_first_come() {
        let line = Line::default();
        let woken: Arc<Mutex<Vec<&str>>> = Arc::default();
        let wait = |place: &Place, name| {
            let woken = Arc::clone(&woken);
            line.wait(place, move |_| woken.lock().push(name));
        };
        let wishes = [Some(&[A][..]), None, Some(&[B, A]), Some(&[B])];
        let places = wishes.map(|wish| line.place(wish.map(Arc::from)));
        for (place, name) in places.iter().zip(["a1", "any", "a2", "left"]) {
            wait(place, name);
        }
        assert!(line.leave(&places[3]) && !line.leave(&places[3]));
        line.call(B);
        assert_eq!(*woken.lock(), ["any"]);
        line.call(A);
        // It was too late, and waits on at the place it had.
        wait(&places[0], "a1 again");
        line.call(A);
        line.call(A);
        line.call(A);
        assert_eq!(*woken.lock(), ["any", "a1", "a1 again", "a2"]);
        // Who was woken, can take nothing and waits on does not hear of it again by passing it on.
        wait(&places[0], "a1");
        wait(&places[2], "behind a1");
        line.pass_behind(&places[0], A);
        line.pass_behind(&places[2], A);
        assert_eq!(woken.lock().last(), Some(&"behind a1"));
        assert!(line.leave(&places[0]));
        assert!(line.state.lock().waiting.is_empty());
    }

    #[test]
    fn who_watches_uses_up_no_wake_up() {
        let line = Line::default();
        let (watching, gone) = (line.watch(), line.watch());
        drop(gone);
        let (tell, told) = unbounded();
        line.wait(&line.place(Some([A].into())), move |workspace| tell.send(workspace).unwrap());
        line.call(A);
        line.call(B);
        assert_eq!(watching.try_iter().collect::<Vec<_>>(), [A, B]);
        assert_eq!(told.try_recv(), Ok(A));
        assert_eq!(line.state.lock().watching.len(), 1);
    }
}
