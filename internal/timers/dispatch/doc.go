// Package dispatch calls timers at their time.
//
// # Model
//
// A dispatcher is a member of role timer. Lanes of the front TIMERS are shared among the live members by
// rendezvous hashing. For each of its lanes it follows the front from the beginning, headers only, into a
// wheel ordered by due time. It fires while it still loads.
//
//	front ─▶ wheel ─▶ due: read the record ─▶ claim (CAS) ─▶ call ─▶ outcome (CAS on the claim)
//
// A claim is made only with a free call slot, a free place at the callback's host and one in its group. What
// finds none waits aside and does not hold up the others. A group may have as many slots as are free, so the
// receivers of one group that hang take no other group's place.
//
// Timers of a lane begin in the order of their due times, then of their records. Calls under way beside each other
// end in any order. With max_concurrent 1 the next one of a group begins in a dispatcher once the last has ended.
//
// # Who is authoritative
//
// The record in the front. The wheel is a copy: a claim of something that was replaced is refused, and the
// record that replaced it is on its way to the wheel.
//
// # The clock
//
// A timer is due by the NATS server's clock (streams.Clock), whatever the machine's says.
//
// # Failures
//
//	crash after          leaves                          then
//	the wheel            pending                         the lane's next owner fires it
//	the claim            firing, called or not           its owner is gone: claimed again, same attempt number
//	the call             firing, called                  the same: at least once
//	the outcome          done, failed or pending         the router moves it on
//
// A lane that cannot be followed is run again, by itself. A run has loaded all it knows: nothing of the run before
// reaches it, and a call goes by the group and the spec of the record that was claimed. A claim of our own is looked at
// again after claimWait, whatever became of the attempt.
//
// A write whose answer is unknown is read back. An own claim that turns out to be stored is called. A record
// that an answer lacks goes back on the wheel. A firing timer of a live owner is left alone for claimWait.
package dispatch
