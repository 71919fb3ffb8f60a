// Package doctor examines a set of nodes, and says what it found, what that means for locks, and what to do about it.
//
// # What is guaranteed
//
//   - A report says something about every node, whatever state it is in, within some seconds: a server that is away,
//     hangs, or forbids to be asked is a finding and no failure.
//   - A node on which it says that locks work has done, with the credentials given, all that a lock asks of it: every
//     command, on a scratch name that is gone afterwards; a subscription; the check of the restart guard.
//   - It changes nothing that clients rely on. It does to a node what any client does when it connects: one that has no
//     record of itself gets one, one that was restarted begins its quarantine. But it decides nothing, and what is on
//     record of the clients (how many nodes they have, the longest TTL) it leaves as it is.
//   - No password is in a report, and none is sent in plain text to a server that should speak TLS.
//
// # What is not
//
// A report is of one moment, and of the way from this machine. How fast a clock runs cannot be seen within a second: two that
// show the same time now may run apart. Nor can it be seen whether servers would fail together.
//
// examine.go gathers, and judge.go and the files that are named after what they judge make findings of it: of what was
// gathered, and of nothing else.
package doctor
