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
//	p.Publish(ctx, meter.Diff{Meter: "bytes", Provider: "p1", Space: "s1", Cause: id, Delta: 1024, Time: t}.Event())
//
// # Failures
//
// Event does not check anything. The producer holds each event to the topic's rules, and
// refuses one without space, cause or delta, or with a delta beyond 2^53.
package meter
