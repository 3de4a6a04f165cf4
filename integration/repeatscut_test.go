package integration

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// EVENTS loses its end, and with it frames that had come before: they left no trace in
// SHARDS but in the checkpoint, and are not named as lost.
func TestRepeatsAreNotLost(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, oneLaneTopic())
	stopRouter, stopSink := d.router(), d.sink()
	p := d.producer("app", wholeFrames)
	d.say(p, 60)
	d.stored("app", 60, 30*time.Second)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.sendAgain(d.messages(schemas.StreamEvents, schemas.SubjectsEvents)[40:60])
	d.noted(80)
	stopRouter()
	stopSink()
	d.cut(schemas.StreamEvents)
	p = d.producer("app", wholeFrames)
	d.say(p, 5)
	d.router()
	d.sink()
	d.stored("app", 65, 30*time.Second)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.noted(d.stream(schemas.StreamEvents).LastSeq)
	d.verify(65)
}
