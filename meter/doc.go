// Package meter makes events of topics of kind meter: signed changes of a size, each counted
// once.
//
// # Model
//
// A Diff says that the size of a space changed by Delta at Time, because of Cause. Meter,
// provider, space and cause together are its identity: however often a diff with the same
// four is sent, one counts, the earliest by time. So a sender that does not know whether a
// diff arrived sends it again.
//
//	e, err := meter.Diff{Meter: "bytes", Provider: "p1", Space: "s1", Cause: id, Delta: 1024, Time: t}.Event()
//	if err != nil {
//		return err
//	}
//	return p.Publish(ctx, e)
//
// # Failures
//
// Event refuses a diff without a space or a cause, with a delta beyond 2^53, or with a label
// given twice. The producer checks its size and time, and what the topic declares.
package meter
