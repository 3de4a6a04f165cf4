// Package jobs carries out long works that a request began, such as an erasure or a
// replay, and remembers them in the registry.
//
// # Model
//
//	queued ──▶ running ──▶ done | failed | cancelled
//	   ▲          │
//	   └──────────┘ the gateway ended, or was killed
//
// A job is one entry of the registry (registry.Job). Every gateway looks for queued ones,
// and takes one by a compare-and-set on its entry. So one gateway runs it. MaxRunning of
// them run at once in a gateway, and MaxQueued may wait. Kinds that yield leave one place to others.
//
// A worker does the work of one kind. It must be able to go on with a job that another
// gateway began: it keeps what it needs for that in the job's state (Task.Save), before
// it acts by it.
//
// # Who is authoritative
//
// The entry. Its revision is the lease: a gateway that runs a job writes it every
// beatEvery. An entry that stays the same for goneAfter is of a gateway that is gone, and
// any other takes it up. Time is each gateway's own, so clocks need not agree.
//
// # Failures
//
// A gateway that ends puts its jobs back into the queue. One that is killed leaves them
// running, and they go on goneAfter later. A gateway that was away for that long meets a
// conflict with its next beat and stops. Workers are idempotent, so nothing is done twice
// in between. An error of a worker ends the job as failed, with the reason; an error of
// the servers is tried again, maxTries times.
package jobs
