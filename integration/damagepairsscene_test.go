package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// pairCluster is an Almanac in one cell: events of "app", documents of "customers", timers.
type pairCluster struct {
	*damagedCluster
	cell  pairCell
	timed *timersEnv
	spool string // a producer's directory
	stops []func()

	olderSpool string
	events     map[string]string   // by message: when it was accepted, "" for one that is only in the spool
	docs       map[string][]docSay // what was acknowledged of each document, in order
	over       map[string]string   // timers that ended: when
	pending    map[string]string   // timers that are pending: when
	called     map[string]int      // calls of those that were over, at the damage
}

// docSay is a version that was acknowledged; n < 0: removed.
type docSay struct {
	n    int
	when string
}

// Times of a story: before the copy, afterDamage it, and after the damage.
const (
	beforeCopy  = "before the copy"
	sinceCopy   = "since the copy"
	afterDamage = "after the damage"
)

// Persons that an erasure took before the copy, and after it.
const (
	firstPerson  = "p-1"
	secondPerson = "p-2"
)

func startPair(t *testing.T, c pairCell) *pairCluster {
	t.Helper()
	app := newTopic("app")
	app.Lanes, app.KeepDays = 1, 60
	docs := docsTopic()
	docs.Lanes, docs.Documents.UserField = 1, "owner"
	d := startOnDisk(t, app, docs)
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	h := &pairCluster{
		damagedCluster: &damagedCluster{onDisk: d}, cell: c, spool: filepath.Join(t.TempDir(), "spool"),
		events: map[string]string{}, docs: map[string][]docSay{}, over: map[string]string{}, pending: map[string]string{}, called: map[string]int{},
	}
	h.timed = d.timers()
	return h
}

// parts starts a router, sinks, a janitor, a dispatcher, and what keeps the copies of the ledger,
// as `almanac up` does.
func (h *pairCluster) parts() {
	h.t.Helper()
	h.stops = []func(){h.router(), h.sink(), h.timed.dispatcher(), h.background(h.keeper().Run)}
}

func (h *pairCluster) rest() {
	for _, stop := range h.stops {
		stop()
	}
	h.stops = nil
}

// say publishes n events, and some of a person.
func (h *pairCluster) say(n int, when string, persons ...string) {
	h.t.Helper()
	p := h.producer("app", func(c *producer.Config) { c.Linger = -1 })
	for range n {
		m := fmt.Sprint(h.said)
		h.said++
		if err := p.Publish(h.t.Context(), producer.Event{Message: m, UserID: "u"}); err != nil {
			h.t.Fatal(err)
		}
		h.events[m] = when
	}
	for _, person := range persons {
		for range 2 {
			if err := p.Publish(h.t.Context(), producer.Event{Message: "of " + person, UserID: person}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	if err := p.Close(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// sayOld publishes an event that retention will take.
func (h *pairCluster) sayOld() {
	h.t.Helper()
	p := h.producer("app", wholeFrames)
	if err := p.Publish(h.t.Context(), producer.Event{Message: "old", UserID: "u", Time: time.Now().AddDate(0, 0, -45)}); err != nil {
		h.t.Fatal(err)
	}
	if err := p.Close(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// spooling is a producer with the spool's directory.
func (h *pairCluster) spooling(url string) (*producer.Producer, error) {
	return producer.Connect(h.t.Context(), url, producer.Config{Topic: "app", Policy: producer.Spool, SpoolDir: h.spool, Linger: time.Millisecond, Stderr: io.Discard,
		NATS: []nats.Option{nats.Timeout(maxWait * 4 * time.Second)}})
}

// closing ends a producer, whose server may be away.
func (h *pairCluster) closing(p *producer.Producer) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = p.Close(ctx)
}

// spoolSome puts events into the spool while no server answers.
func (h *pairCluster) spoolSome(n int, prefix string) {
	h.t.Helper()
	p, err := h.spooling("nats://127.0.0.1:1")
	h.must(err)
	for i := range n {
		m := fmt.Sprint(prefix, i)
		p.Log(producer.Event{Message: m, UserID: "u"})
		h.events[m] = ""
	}
	eventually(h.t, time.Minute, func() error {
		if s := p.Stats(); s.Buffered > 0 {
			return fmt.Errorf("%d events are not in the spool", s.Buffered)
		}
		return nil
	})
	h.closing(p)
}

// sendSpool sends what the spool has. Where the topic is not known any more it stays there.
func (h *pairCluster) sendSpool(prefix, when string) error {
	h.t.Helper()
	p, err := h.spooling(h.srv.NATSURL)
	if err != nil {
		return err
	}
	h.flush(p)
	h.closing(p)
	for m := range h.events {
		if strings.HasPrefix(m, prefix) {
			h.events[m] = when
		}
	}
	return nil
}

// write writes a document, or removes it where n is negative.
func (h *pairCluster) write(c *documents.Collection, id string, n int, when, owner string) error {
	h.t.Helper()
	body := fmt.Appendf(nil, `{"n":%d,"owner":%q}`, n, owner)
	var err error
	switch _, have := h.docs[id]; {
	case n < 0:
		err = c.Remove(h.t.Context(), id, documents.Always)
	case have:
		_, err = c.Put(h.t.Context(), documents.Draft{ID: id, Body: body})
	default:
		_, err = c.Create(h.t.Context(), documents.Draft{ID: id, Body: body})
	}
	if err == nil {
		h.docs[id] = append(h.docs[id], docSay{n, when})
	}
	return err
}

func (h *pairCluster) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// collection opens the documents.
func (h *pairCluster) collection() (*documents.Collection, error) {
	return documents.Open(h.t.Context(), h.connect(), "customers", documents.Config{By: "test", Archive: archive.New(h.reg, h.db)})
}

// timer creates a timer.
func (h *pairCluster) timer(id, user, when string) error {
	_, _, err := h.timed.Create(h.t.Context(), timers.Draft{Group: "g", ID: id, Due: time.Now().Add(time.Hour), URL: h.timed.url, Payload: fmt.Appendf(nil, `{"of":%q}`, id), User: user})
	if err == nil {
		h.pending[id] = when
	}
	return err
}

// fired has a timer called and ended.
func (h *pairCluster) fired(id, when string) {
	h.t.Helper()
	_, err := h.timed.FireNow(h.t.Context(), "g", id)
	h.must(err)
	h.timed.is(id, timer.StateDone)
	delete(h.pending, id)
	h.over[id] = when
}

// eraseAll erases a person in each topic.
func (h *pairCluster) eraseAll(person string) {
	h.t.Helper()
	for _, topic := range []string{"app", "customers", schemas.DefaultTimerTopic} {
		h.erase(erasure.Request{Topic: topic, Users: []string{person}, Reason: "asked for"})
	}
}

// first is what came before the copy.
func (h *pairCluster) first() {
	h.t.Helper()
	h.parts()
	h.say(10, beforeCopy, firstPerson, secondPerson)
	h.sayOld()
	c, err := h.collection()
	h.must(err)
	for i := range 6 {
		h.must(h.write(c, fmt.Sprint("d-", i), i, beforeCopy, ""))
	}
	past, err := h.past()
	h.must(err)
	h.must(h.write(past, "past-0", 0, beforeCopy, ""))
	h.must(h.write(past, "past-1", 1, beforeCopy, ""))
	for _, person := range []string{firstPerson, secondPerson} {
		h.must(h.write(c, "of-"+person, 1, beforeCopy, person))
		h.must(h.timer("of-"+person, person, beforeCopy))
	}
	for i := range 6 {
		h.must(h.timer(fmt.Sprint("t-", i), "", beforeCopy))
	}
	h.fired("t-0", beforeCopy)
	h.eraseAll(firstPerson)
	p, err := h.spooling(h.srv.NATSURL) // a spool learns its topic from a server
	h.must(err)
	h.closing(p)
	h.allResolved()
}

// copied makes the copy: of NATS's directory, of the spool and of the tables.
func (h *pairCluster) copied() {
	h.t.Helper()
	h.rest()
	h.spoolSome(3, "a-")
	h.copyTables()
	h.stop()
	h.older, h.olderSpool = filepath.Join(h.t.TempDir(), "older"), filepath.Join(h.t.TempDir(), "spool")
	h.must(os.CopyFS(h.older, os.DirFS(h.dir)))
	h.must(os.CopyFS(h.olderSpool, os.DirFS(h.spool)))
	h.run()
	h.reopen()
}

// second is what came after the copy.
func (h *pairCluster) second() {
	h.t.Helper()
	h.parts()
	h.must(h.sendSpool("a-", sinceCopy))
	h.say(10, sinceCopy)
	h.allResolved()
	h.say(0, sinceCopy, secondPerson) // the last insert of its shard, of which an erasure leaves nothing
	c, err := h.collection()
	h.must(err)
	h.must(h.write(c, "d-0", 10, sinceCopy, ""))
	h.must(h.write(c, "d-0", 11, sinceCopy, ""))
	h.must(h.write(c, "d-1", -1, sinceCopy, ""))
	past, err := h.past()
	h.must(err)
	h.must(h.write(past, "past-0", 10, sinceCopy, "")) // between those of this month
	h.must(h.write(c, "d-2", 12, sinceCopy, ""))
	h.must(h.write(past, "past-2", 2, sinceCopy, ""))
	h.must(h.write(c, "d-6", 6, sinceCopy, ""))
	h.fired("t-1", sinceCopy)
	_, err = h.timed.Delete(h.t.Context(), "g", "t-2", timers.Always)
	h.must(err)
	delete(h.pending, "t-2")
	h.over["t-2"] = sinceCopy
	h.must(h.timer("t-6", "", sinceCopy))
	h.eraseAll(secondPerson)
	h.expire(expiringDays)
	h.allResolved()
	h.endNoted()
	h.rest()
	h.lag()
	h.spoolSome(3, "b-")
	h.timed.mu.Lock()
	for id := range h.over {
		h.called[id] = len(h.timed.calls[id])
	}
	h.timed.mu.Unlock()
}

// allResolved waits until everything is stored and proven.
func (h *pairCluster) allResolved() {
	h.t.Helper()
	eventually(h.t, time.Minute, func() error {
		rep, err := h.proofFronts()
		if err != nil {
			return err
		}
		if !rep.OK() || rep.Pending > 0 {
			return fmt.Errorf("%+v %q", rep.Totals, rep.Problems)
		}
		for i := range rep.Topics {
			if f := rep.Topics[i].Front; f != nil && f.Waiting+f.Differ > 0 {
				return fmt.Errorf("%+v", f)
			}
		}
		return nil
	})
}

// third is what comes after the damage. A write that a part refuses is not acknowledged: it says
// which were.
func (h *pairCluster) third(try int) (refused []string) {
	h.t.Helper()
	refuse := func(what string, err error) {
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", what, err))
		}
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), maxWait*20*time.Second)
	defer cancel()
	if p, err := producer.New(ctx, h.connect(), producer.Config{Topic: "app", Service: "test", Policy: producer.Block, Linger: -1}); err != nil {
		refuse("events", err)
	} else {
		for range 5 {
			m := fmt.Sprint(h.said)
			h.said++
			if err := p.Publish(ctx, producer.Event{Message: m, UserID: "u"}); err != nil {
				refuse("event "+m, err)
				continue
			}
			h.events[m] = afterDamage
		}
		h.closing(p)
	}
	if c, err := h.collection(); err != nil {
		refuse("documents", err)
	} else {
		n := 100 * try
		refuse("d-0", h.write(c, "d-0", n, afterDamage, ""))
		refuse("d-3", h.write(c, "d-3", n+3, afterDamage, ""))
		if past, err := h.past(); err != nil {
			refuse("documents", err)
		} else {
			refuse("past-1", h.write(past, "past-1", n+1, afterDamage, ""))
		}
		refuse("d-6", h.write(c, "d-6", n+6, afterDamage, ""))
		refuse("new", h.write(c, fmt.Sprint("new-", try), n, afterDamage, ""))
	}
	refuse("timers", h.timer(fmt.Sprint("new-", try), "", afterDamage))
	return refused
}

// bodyOf is the number in a document's body.
func bodyOf(d *documents.Document, err error) (int, error) {
	if errors.Is(err, documents.ErrNotFound) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	var body struct {
		N int `json:"n"`
	}
	err = json.Unmarshal(d.Body, &body)
	return body.N, err
}
