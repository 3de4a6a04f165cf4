package recent

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// A frame of EVENTS says which part of a keyed request it is; what does not say it well is of none, and so is a frame of SHARDS.
func TestPartOf(t *testing.T) {
	t.Parallel()
	part := schemas.Part{Request: schemas.DigestOfRequest{7}, From: 3, To: 9}
	keyed, subject := nats.Header{schemas.HeaderPart: {part.String()}}, schemas.EventsSubject("app", 202611, 2)
	if got := partOf(schemas.StreamEvents, keyed, subject, 70); got == nil || *got != (schemas.GivenPart{Month: 202611, Part: part, At: 70}) {
		t.Errorf("it is %+v", got)
	}
	for name, got := range map[string]*schemas.GivenPart{
		"without the header":  partOf(schemas.StreamEvents, nats.Header{}, subject, 70),
		"no part":             partOf(schemas.StreamEvents, nats.Header{schemas.HeaderPart: {"x"}}, subject, 70),
		"a subject of no one": partOf(schemas.StreamEvents, keyed, "events.app.x", 70),
		"in SHARDS":           partOf(schemas.StreamShards, keyed, subject, 70),
	} {
		t.Run(name, func(t *testing.T) {
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// What a lane was given counts for the directory as long as its frame index knows it.
func TestGivenIsForgotten(t *testing.T) {
	t.Parallel()
	d := newRecentCache(&nats.Conn{})
	tr := &frameIndex{cache: d, given: &given{held: 5}}
	d.parts.Store(7)
	tr.begin(1, 1)
	if tr.forgetGiven(); tr.given != nil || d.parts.Load() != 2 {
		t.Errorf("%d parts are counted, known are %v", d.parts.Load(), tr.given)
	}
}
