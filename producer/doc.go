// Package producer puts events into Almanac's log without making the
// application wait.
//
//	p, err := producer.Connect(ctx, "nats://127.0.0.1:4222", producer.Config{Topic: "auth", Service: "api"})
//	p.Log(producer.Event{Type: "login", UserID: "u-7", Message: "logged in"}) // never waits, never fails
//	err = p.Publish(ctx, ev)                                                  // returns when stored
//	err = p.Close(ctx)
//
// # The way of an event
//
//	Log ──▶ open ──▶ closed ──▶ encoded ──▶ sent ──▶ stored
//	 │       │         │           │          │▲
//	 │       └─────────┴─────┬─────┘          └┘ no answer, or refused: once more
//	 ▼                       ▼                │
//	dropped ◀────────────────┴────────────────┘
//
// Under the policy Spool there is one more place to be, on disk, between closed
// and sent: encoded ──▶ spooled ──▶ sent (spooling.go, replay.go; package spool
// has the files). A frame in flight may be spooled too. It stays in memory.
//
// Log (producer.go) checks the event and copies it into the open frame of its
// month and lane (admit.go, lane.go): columns, not structs. A frame closes at
// schemas.FrameRows events, schemas.FrameRawBytes bytes, or after the linger. It closes later
// where many come (linger.go), and while frames of its lane before it are unanswered
// (closeAt).
// One goroutine (sender.go) encodes closed frames, gives each the next seq of
// its lane, publishes it, and settles it when JetStream answers (answer.go).
// When frames are filled faster than it encodes, the call to Log that fills one
// encodes it, about a millisecond of work. It does not wait.
//
// A Batch (batch.go) hands over the events of one request together. With a key
// (keyed.go) they have frames of their own, which are named by the key and
// the events, so that a batch that is submitted again is stored once: by EVENTS, and
// where that forgot the ids by the router (router/given.go).
//
// The topic's descriptor is read once, at the start. Fields promoted later are
// plain attributes until the process starts again. Its lanes never change.
//
// A producer hears when its topic's descriptor is written, and asks the registry then, after a
// reconnect before it sends (for at most heldFor), and once a minute (removed.go). Once the topic was
// removed, it refuses every event and gives up what waits: a router would count it, and keep
// nothing. A topic that the registry merely lost goes on.
//
// # Who is authoritative
//
// The stream EVENTS: an event is stored when its answer has arrived, which on
// Almanac's servers means after fsync. Everything else is unknown, and unknown
// means send again: the same bytes under the same seq and Nats-Msg-Id. The
// stream forgets ids after schemas.DedupWindow. Beyond it the router refuses
// what it has had, for which it remembers the 64 seqs below the highest. So a
// window (window.go) never lets a lane's unanswered seqs spread further: a
// frame that does not get through holds its lane, and the buffer fills.
//
// # When an event may be lost
//
// Only these, each counted in Stats by its cause:
//
//   - it breaks a limit of schemas (too large, too far ahead, …);
//   - the buffer is full (buffer-full; under DropOldest: oldest);
//   - it comes after Close, or Close ends before it is stored (closed);
//   - its topic was removed (topic-removed);
//   - the server refuses frames of its size for good (max-payload), or the
//     caller closed the connection given to New (connection-closed);
//   - the spool is full (spool-full), fails (spool-failed), or did not give a
//     frame back as it was written (spool-damaged);
//   - the process dies first: then no counter remains, and what was lost is what was
//     logged and not stored, at most the linger (320 ms in a busy lane) and one
//     round trip in good times and the buffer in bad ones. Under Spool it is what was logged in the last
//     250 ms before it died (spoolAfter), in an outage of any length; a power
//     failure costs Config.SpoolSync more.
//
// An event whose Publish returned nil is none of these. A frame that was given
// up after it was sent may be stored all the same: drops are an upper bound of
// what is missing. Drops go to Config.Stderr and Hooks.OnDrop at most once a
// second, and to the topic itself as events of type TypeDropped, once frames
// get through again.
//
// # Bounds
//
// Config.BufferEvents and BufferBytes bound everything from open to sent.
// Config.InFlight and InFlightBytes bound what is sent. Config.SpoolBytes bounds what is
// on disk, of which one frame and what is in flight are in memory. Calls that wait take a
// context, or end with Close. The package keeps no global state, starts six
// goroutines for each producer (eight with a spool, one or two more where that starts
// without a server), and logs nothing.
package producer
