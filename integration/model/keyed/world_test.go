package keyed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Break is a guard that is left out.
type Break int

// The breaks.
const (
	None           Break = iota
	NamesVersion         // ids and parts are of the topic's version too
	EventsAlone          // only EVENTS knows the ids
	InMemory             // the router keeps the parts in memory alone
	AfterTheBatch        // the parts are kept in a message of their own, after the batch
	CountsFrames         // frames are cut by the topic's version, and named by their number
	WindowsUntaken       // a repetition is not taken by its producer's window
	ForgetsEarly         // parts are kept as long as a hurried janitor keeps messages
	Unfenced             // the parts are read before the checkpoint
	Expires              // parts are kept for ten minutes by the clock, however far behind the router is
)

// Mutants of the protocol, by name.
var Mutants = map[string]Break{
	"parts expire while messages wait for a router":              Expires,
	"frames are named by the topic's version":                    NamesVersion,
	"ids live in EVENTS alone":                                   EventsAlone,
	"the router keeps parts in memory":                           InMemory,
	"parts are kept after the batch":                             AfterTheBatch,
	"frames are numbered in a cut that follows the version":      CountsFrames,
	"a repetition is not taken by its producer's window":         WindowsUntaken,
	"parts are forgotten after thirty seconds":                   ForgetsEarly,
	"a router that takes over reads parts before its checkpoint": Unfenced,
}

const month = schemas.Month(202611)

// pressed is how long a janitor in a hurry keeps messages.
const pressed = 30 * time.Second

// request is events 0 to n-1 under a key.
type request struct {
	id     byte
	n      int
	first  int64 // when a try began; 0: none
	acked  bool
	stored []int // by event: how often it was stored, ever
}

// flight is a frame of a try that was not answered.
type flight struct {
	of    *try
	frame schemas.Frame
	part  schemas.Part
	id    string
}

// try is a request by a producer of its own.
type try struct {
	req  *request
	left int
}

// message is one of EVENTS.
type message struct {
	flight
	at   int64
	gone bool
}

// routed is what a commit of the router says. parts are what was kept with it.
type routed struct {
	source  int // messages dealt with
	windows checkpoint.Windows
	at      int64 // when the batch was committed; the parts that it keeps age from then
	parts   []schemas.GivenPart
}

// World is one run.
type World struct {
	rng     *rand.Rand
	breaks  Break
	now     int64
	version int
	tries   int

	requests []*request
	flights  []flight
	events   []message
	ids      map[string]int64
	commits  []routed  // the last is the checkpoint; all keep parts
	routers  [2]router // the second one takes over at times
	violated error
	// Seen counts what the guards were needed for.
	Seen map[string]int
}

// Run plays a seed.
func Run(seed uint64, breaks Break) (*World, error) {
	w := &World{rng: rand.New(rand.NewPCG(seed, 7)), breaks: breaks, now: int64(time.Hour), version: 1, ids: map[string]int64{}, Seen: map[string]int{}}
	for i := range 1 + w.rng.IntN(3) {
		n := 1 + w.rng.IntN(9)
		w.requests = append(w.requests, &request{id: byte(i + 1), n: n, stored: make([]int, n)})
	}
	slow := 1 + w.rng.IntN(40)
	for range 400 {
		w.now += int64(w.rng.IntN(slow*1000)) * int64(time.Millisecond)
		w.step()
		if w.violated != nil {
			return w, w.violated
		}
	}
	for len(w.flights) > 0 || w.last().source < len(w.events) {
		for len(w.flights) > 0 {
			w.deliver(0, false)
		}
		w.routers[0].run(w, 8, false)
	}
	w.check(true)
	return w, w.violated
}

func (w *World) last() routed {
	if len(w.commits) == 0 {
		return routed{}
	}
	return w.commits[len(w.commits)-1]
}

// step lets one of them do one thing.
func (w *World) step() {
	switch w.rng.IntN(16) {
	case 0, 1, 2:
		w.try(w.requests[w.rng.IntN(len(w.requests))])
	case 3, 4, 5, 6:
		if len(w.flights) > 0 {
			w.deliver(w.rng.IntN(len(w.flights)), w.rng.IntN(4) == 0)
		}
	case 7: // a gateway dies, or waits for an answer for long
		if len(w.flights) > 0 {
			if i := w.rng.IntN(len(w.flights)); w.rng.IntN(2) == 0 {
				t := w.flights[i].of
				w.flights = slices.DeleteFunc(w.flights, func(f flight) bool { return f.of == t })
			} else if w.sentOnce(&w.flights[i]) && w.rng.IntN(4) == 0 {
				w.now += int64(schemas.GivenFor) + int64(time.Minute)
				w.deliver(i, false)
			}
		}
	case 8, 9, 10, 11:
		w.routers[w.rng.IntN(8)/7].run(w, 1+w.rng.IntN(4), w.rng.IntN(3) == 0)
	case 12:
		w.routers[w.rng.IntN(2)] = router{}
	case 13:
		w.restart()
	case 14:
		w.version++
	case 15:
		w.purge()
	}
	w.check(false)
}

// sentOnce reports whether EVENTS had a flight's very message: its answer was lost. What never came in ten minutes
// is a new request then.
func (w *World) sentOnce(f *flight) bool {
	return slices.ContainsFunc(w.events, func(m message) bool { return m.frame.Producer == f.frame.Producer && m.frame.Seq == f.frame.Seq })
}

// try begins a try of a request, within the time for which it is stored once.
func (w *World) try(r *request) {
	if r.first != 0 && w.now-r.first > int64(schemas.GivenFor)/2 {
		return
	}
	if r.first == 0 {
		r.first = w.now
	}
	w.tries++
	t := &try{req: r}
	size := 3
	request := schemas.DigestOfRequest{r.id}
	if w.breaks == CountsFrames {
		size = 2 + w.version%3
	}
	if w.breaks == NamesVersion {
		request[1] = byte(w.version)
	}
	for from := 0; from < r.n; from += size {
		t.left++
		f := flight{of: t, frame: schemas.Frame{Producer: fmt.Sprint("p", w.tries), Seq: uint64(t.left), Rows: min(size, r.n-from)}}
		f.part = schemas.Part{Request: request, From: uint32(from), To: uint32(from + f.frame.Rows)}
		f.id = f.part.MsgID(month, 0)
		if w.breaks == CountsFrames {
			f.id = fmt.Sprint(request, t.left)
		}
		w.flights = append(w.flights, f)
	}
}

// deliver brings a flight to EVENTS. Its answer may be lost; then it is sent again.
func (w *World) deliver(i int, lost bool) {
	f := w.flights[i]
	if r := f.of.req; w.now-r.first > int64(schemas.GivenFor) && !w.sentOnce(&f) { // the gateway gave it up
		w.flights = slices.Delete(w.flights, i, i+1)
		return
	}
	if at, had := w.ids[f.id]; !had || w.now-at >= int64(schemas.DedupWindow) {
		w.now++ // no two messages are stored at one instant
		w.events = append(w.events, message{flight: f, at: w.now})
		w.ids[f.id] = w.now
	} else {
		w.Seen["known to EVENTS"]++
	}
	if lost {
		return
	}
	w.flights = slices.Delete(w.flights, i, i+1)
	if f.of.left--; f.of.left == 0 {
		f.of.req.acked = true
	}
}

// restart has NATS read its ids again from the messages that are there.
func (w *World) restart() {
	clear(w.ids)
	for _, m := range w.events {
		if !m.gone && w.now-m.at < int64(schemas.DedupWindow) {
			w.ids[m.id] = m.at
		}
	}
}

// purge takes routed messages out of EVENTS: an erasure some of them, a janitor in a hurry the older ones. The
// message of the checkpoint stays.
func (w *World) purge() {
	some := w.rng.IntN(3)
	for i := range max(0, w.last().source-1) {
		m := &w.events[i]
		if some == 0 && w.rng.IntN(2) == 0 || some == 1 || some == 2 && w.now-m.at > int64(pressed) {
			m.gone = true
		}
	}
}

// check holds what is stored against what was promised.
func (w *World) check(end bool) {
	for _, r := range w.requests {
		for i, n := range r.stored {
			if n > 1 || end && r.acked && n == 0 {
				w.violated = fmt.Errorf("event %d of request %d is stored %d times", i, r.id, n)
			}
		}
	}
}
