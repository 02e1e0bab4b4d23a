//! Concurrent callers, late members, delayed members and panics.

use super::*;
use std::sync::atomic::AtomicU64;

#[test]
fn every_unit_is_done_once_in_every_phase() {
    for threads in [1, 2, 3, 7] {
        let team = Team::new(threads);
        let done: Vec<Vec<AtomicU64>> =
            (0..5).map(|_| (0..100).map(|_| AtomicU64::new(0)).collect()).collect();
        for _ in 0..200 {
            team.run(threads, &|member| {
                for phase in &done {
                    member.share(100, 3, |units| {
                        units.for_each(|unit| {
                            phase[unit].fetch_add(1, Ordering::Relaxed);
                        });
                    });
                    member.barrier();
                }
            });
        }
        assert!(done.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 200), "{threads}");
    }
}

#[test]
fn writes_of_one_phase_are_visible_in_the_next() {
    let team = Team::new(3);
    let numbers: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(1)).collect();
    let sums: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    team.run(3, &|member| {
        member.share(64, 1, |units| units.for_each(|unit| numbers[unit].store(2, Ordering::Relaxed)));
        member.barrier();
        member.share(64, 1, |units| {
            let sum = numbers.iter().map(|number| number.load(Ordering::Relaxed)).sum();
            units.for_each(|unit| sums[unit].store(sum, Ordering::Relaxed));
        });
    });
    assert!(sums.iter().all(|sum| sum.load(Ordering::Relaxed) == 128));
}

#[test]
fn any_number_of_members_can_be_requested() {
    let team = Team::new(4);
    for requested in [1, 2, 3, 4, 100, 0, 2, 4] {
        let members = AtomicU64::new(0);
        team.run(requested, &|member| {
            assert_eq!(member.size(), requested.clamp(1, 4));
            members.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(members.load(Ordering::Relaxed), requested.clamp(1, 4) as u64);
    }
}

#[test]
fn concurrent_callers_run_one_after_another() {
    let team = Team::new(3);
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    team.run(3, &|member| {
                        if member.index() == 0 {
                            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                        }
                        member.barrier();
                        if member.index() == 0 {
                            running.fetch_sub(1, Ordering::SeqCst);
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn an_idle_team_sleeps_and_wakes_up_again() {
    let team = Team::new(2);
    team.run(2, &|member| member.barrier());
    let asleep = || team.shared.asleep[1].load(Ordering::SeqCst);
    assert!(eventually(asleep), "still awake");
    let members = AtomicUsize::new(0);
    team.run(2, &|member| {
        members.fetch_add(1, Ordering::SeqCst);
        member.barrier();
    });
    assert_eq!(members.load(Ordering::SeqCst), 2);
}

/// Waits up to ten seconds for `happened`. Returns whether it did.
fn eventually(happened: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !happened() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
    happened()
}

#[test]
fn with_late_members_every_unit_is_done_once_and_before_the_next_phase() {
    for size in [2, 3, 5] {
        let team = Team::new(size);
        let late = AtomicU64::new(1);
        // One of `one_of` calls sleeps, often for longer than members are waited for.
        let delay = |one_of: u64| {
            let number = late.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            if (number >> 32).is_multiple_of(one_of) {
                thread::sleep(Duration::from_millis((number >> 40) % 15));
            }
        };
        for _ in 0..30 {
            let units: Vec<AtomicU64> = (0..20).map(|_| AtomicU64::new(0)).collect();
            team.run(size, &|member| {
                for phase in 0..8 {
                    delay(20);
                    member.share(units.len(), 2, |range| {
                        delay(40);
                        for unit in range {
                            assert_eq!(units[unit].fetch_add(1, Ordering::Relaxed), phase);
                        }
                    });
                    delay(20);
                    member.barrier();
                }
            });
            assert!(units.iter().all(|unit| unit.load(Ordering::Relaxed) == 8), "{size} members");
        }
    }
}

#[test]
fn members_work_through_shares_of_their_own_and_take_from_a_late_one() {
    let team = Team::new(2);
    for late in [None, Some(0), Some(1)] {
        let done: Vec<AtomicUsize> = (0..64).map(|_| AtomicUsize::new(usize::MAX)).collect();
        let others = AtomicUsize::new(0);
        team.run(2, &|member| {
            // Both are there before either begins.
            member.barrier();
            let mut first = true;
            member.share(64, 4, |units| {
                let own = member.portion(64, member.index());
                others.fetch_add(usize::from(!own.contains(&units.start)), Ordering::Relaxed);
                if late == Some(member.index()) && std::mem::take(&mut first) {
                    thread::sleep(Duration::from_millis(20));
                }
                for unit in units {
                    let before = done[unit].swap(member.index(), Ordering::Relaxed);
                    assert_eq!(before, usize::MAX, "unit {unit} was done twice");
                }
                thread::sleep(Duration::from_micros(200));
            });
            member.barrier();
        });
        assert!(done.iter().all(|by| by.load(Ordering::Relaxed) < 2));
        if late.is_some() {
            assert!(others.into_inner() >= 5, "nobody helped a late member");
        }
    }
}

#[test]
fn a_member_that_is_always_late_leaves_the_pass_and_half_of_it_counts_as_delay() {
    let team = Team::new(2);
    let (left, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let on_every_member = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let pass = team.run(2, &|member| {
        for _ in 0..50 {
            member.on_every_member(|| {
                on_every_member[member.index()].fetch_add(1, Ordering::Relaxed);
            });
            if member.index() == 1 && member.size() == 2 {
                thread::sleep(Duration::from_millis(20));
            }
            member.share(2, 1, |units| {
                done.fetch_add(units.len(), Ordering::Relaxed);
                if member.size() == 1 {
                    thread::sleep(Duration::from_millis(2));
                }
            });
            member.barrier();
        }
        left.store(2 - member.size(), Ordering::Relaxed);
    });
    assert_eq!((left.into_inner(), done.into_inner()), (1, 100));
    let [stayed, went] = on_every_member.map(AtomicUsize::into_inner);
    assert!(stayed == 50 && went < 50, "a member that left goes on working: {went} times");
    assert!(pass.delay > 0.45 * pass.ms, "{pass:?}");
}

#[test]
fn a_member_that_is_late_in_every_pass_is_dropped() {
    let team = Team::new(2);
    let passes = (0..100).take_while(|_| {
        team.run(team.members(), &|member| {
            if member.index() == 1 {
                thread::sleep(Duration::from_millis(20));
            }
            member.share(2, 1, |_| {});
            member.barrier();
        });
        team.members() == 2
    });
    assert!(passes.count() < 20);
}

#[test]
fn an_unneeded_member_sleeps_while_the_others_work() {
    let team = Team::new(3);
    team.run(3, &|member| member.barrier());
    let asleep = || {
        team.run(2, &|member| member.barrier());
        team.shared.asleep[2].load(Ordering::SeqCst)
    };
    assert!(eventually(asleep), "still awake");
}

#[test]
fn a_panic_on_any_member_ends_that_pass_only() {
    let team = Team::new(3);
    let before = Arc::new(());
    for (culprit, phase) in (0..3).flat_map(|culprit| (0..4).map(move |phase| (culprit, phase))) {
        let payload = Arc::clone(&before);
        let pass = catch_unwind(AssertUnwindSafe(|| {
            team.run(3, &|member| {
                for at in 0..4 {
                    member.share(30, 1, |_| std::hint::spin_loop());
                    if (member.index(), at) == (culprit, phase) {
                        resume_unwind(Box::new(Arc::clone(&payload)));
                    }
                    member.barrier();
                }
            })
        }));
        let panic = pass.expect_err("the pass broke");
        assert!(
            Arc::ptr_eq(&panic.downcast::<Arc<()>>().unwrap(), &before),
            "member {culprit}, phase {phase}"
        );

        let done = AtomicU64::new(0);
        let members = AtomicU64::new(0);
        team.run(3, &|member| {
            for _ in 0..4 {
                member.share(30, 1, |units| {
                    done.fetch_add(units.len() as u64, Ordering::Relaxed);
                });
                member.barrier();
            }
            members.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!((done.into_inner(), members.into_inner()), (4 * 30, 3), "the next pass is whole");
    }
}

#[test]
fn no_work_is_done_after_the_barrier_at_which_a_pass_broke() {
    let team = Team::new(2);
    let after = AtomicU64::new(0);
    let pass = catch_unwind(AssertUnwindSafe(|| {
        team.run(2, &|member| {
            if member.index() == 1 {
                resume_unwind(Box::new("broken"));
            }
            member.barrier();
            member.share(10, 1, |_| {
                after.fetch_add(1, Ordering::Relaxed);
            });
            member.on_every_member(|| {
                after.fetch_add(1, Ordering::Relaxed);
            });
        })
    }));
    assert_eq!((pass.is_err(), after.into_inner()), (true, 0));
}
