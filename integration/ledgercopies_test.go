package integration

import (
	"bytes"

	"fmt"

	"os"

	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	querydocuments "github.com/almanac-events/almanac/internal/query/documents"

	"github.com/almanac-events/almanac/internal/registry/ledger"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"

	"github.com/almanac-events/almanac/schemas/sql"

	"github.com/almanac-events/almanac/timers"
)

// copied are the topics that people are erased from.
var copied = []string{"app", "purged", "customers", schemas.DefaultTimerTopic, "trail", "usage"}

// erasedPerson is the user who is erased, keptPerson one who is not. What the former does after
// the erasure has the message "later".
const (
	erasedPerson = "u-erased"
	keptPerson   = "u-kept"
)

// shown is what every door shows of the erased person from before the erasure. A door that
// refuses shows nothing.
func (h *copiesCluster) shown() (out []string) {
	h.t.Helper()
	ctx := h.t.Context()
	r := h.reader()
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, topic := range []string{"app", "purged", "trail", "usage"} {
		if page, err := r.Query(ctx, query.Request{Topic: topic, Where: "user_id = '" + erasedPerson + "' AND message = 'before'", Limit: 100}); err == nil && len(page.Events) > 0 {
			say("query: %d of %s", len(page.Events), topic)
		}
		if body, err := r.SQL(ctx, query.SQLRequest{SQL: fmt.Sprintf("SELECT count() AS n FROM %s WHERE user_id = '%s' AND message = 'before'", h.table(topic), erasedPerson), Format: "TSV"}); err == nil {
			var n int
			_, err := fmt.Fscan(body, &n)
			_ = body.Close()
			if err == nil && n > 0 {
				say("SQL: %d of %s", n, topic)
			}
		}
		if j, err := h.replayer(nil).Begin(ctx, replay.Request{Topic: topic, Where: "user_id = '" + erasedPerson + "' AND message = 'before'"}); err == nil {
			var text bytes.Buffer
			_, _ = j.Run(ctx, &text, replay.Pace{})
			if text.Len() > 0 {
				say("replay of %s: %s", topic, text.String())
			}
		}
	}
	if rep, err := usage.New(r).Report(ctx, usage.Request{Topic: "usage", From: time.Now().Add(-24 * time.Hour).Truncate(time.Second), To: time.Now().Truncate(time.Second), Customer: erasedPerson, GroupBy: usage.Total}); err == nil {
		for _, b := range rep.Bills {
			if b.Causes > 2 {
				say("usage: %+v", b)
			}
		}
	}
	if c, err := documents.Open(ctx, h.connect(), "customers", documents.Config{Archive: querydocuments.New(h.reg, h.db)}); err == nil {
		id := "before-" + erasedPerson
		if d, err := c.Load(ctx, id); err == nil {
			say("document: %+v", d)
		}
		if v, err := c.History(ctx, id); err == nil {
			say("history: %+v", v)
		}
		if page, err := c.List(ctx, documents.Selection{Path: "p"}); err == nil {
			for _, d := range page.Documents {
				if d.ID == id {
					say("list: %+v", d)
				}
			}
		}
	}
	if te, err := h.openTimers(); err == nil {
		if page, err := te.List(ctx, "g", timers.Filter{}); err == nil {
			for _, tm := range page.Timers {
				if tm.User == erasedPerson && strings.HasPrefix(tm.ID, "before") {
					say("timer: %+v", tm)
				}
			}
		}
		if v, err := te.History(ctx, "g", "before-"+erasedPerson); err == nil && slices.ContainsFunc(v, func(tm timers.Timer) bool { return tm.User == erasedPerson }) {
			say("timer's history: %+v", v)
		}
	}
	return out
}

// there fails the test unless what is not erased can be read.
func (h *copiesCluster) there(when string) {
	h.t.Helper()
	ctx := h.t.Context()
	eventually(h.t, time.Minute, func() error {
		c, err := documents.Open(ctx, h.connect(), "customers", documents.Config{Archive: querydocuments.New(h.reg, h.db)})
		if err != nil {
			return err
		}
		if topic := c.Topic(); topic.Documents.UserField != "owner" {
			return fmt.Errorf("the descriptor of documents came back as %+v", topic)
		}
		if _, err := c.Load(ctx, "before-"+keptPerson); err != nil {
			return fmt.Errorf("another's document: %w", err)
		}
		te, err := h.openTimers()
		if err != nil {
			return err
		}
		if _, err := te.Get(ctx, "g", "before-"+keptPerson); err != nil {
			return fmt.Errorf("another's timer: %w", err)
		}
		if n := h.found("app", "user_id = '"+keptPerson+"' AND message = 'before'"); n != 2 {
			return fmt.Errorf("%d events of another, want 2", n)
		}
		return nil
	})
	if h.t.Failed() {
		h.t.Log(when)
	}
}

// copyDamages are what may become of the copies of the ledger.
var copyDamages = []struct {
	name string
	do   func(h *copiesCluster)
	// names: what is lost beside the ledger is named by verify.
	names bool
	// always: played by every test run.
	always bool
}{
	{"the registry deleted", func(h *copiesCluster) { h.lose(false, schemas.KVStream) }, false, false},
	{"the registry older", func(h *copiesCluster) { h.lose(true, schemas.KVStream) }, false, false},
	{"its copies deleted", func(h *copiesCluster) { h.lose(false, schemas.CopiesStream) }, false, false},
	{"its copies older", func(h *copiesCluster) { h.lose(true, schemas.CopiesStream) }, false, false},
	{"ClickHouse older", func(h *copiesCluster) { h.olderClickHouse() }, false, false},
	{"ClickHouse lost", func(h *copiesCluster) { h.exec("DROP DATABASE %s SYNC", sql.QuoteName(h.srv.Database)) }, true, false},
	{"the registry and its copies deleted", func(h *copiesCluster) { h.lose(false, schemas.KVStream, schemas.CopiesStream) }, true, false},
	{"the registry and its copies older", func(h *copiesCluster) { h.lose(true, schemas.KVStream, schemas.CopiesStream) }, true, false},
	{"the registry deleted, ClickHouse older", func(h *copiesCluster) { h.lose(false, schemas.KVStream); h.olderClickHouse() }, false, true},
	{"all of NATS older", func(h *copiesCluster) {
		h.lose(true, schemas.KVStream, schemas.CopiesStream, schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers)
	}, true, false},
}

// Whatever copy of the ledger is lost or older, of registry, ClickHouse or all of NATS, a person
// who was erased is shown by no door: not before anything was carried out again, nor after that,
// nor after a repair and a restart. What was not erased can be read, and verify proves it, or
// names what else was lost. ALMANAC_LEDGER_COPIES=all plays all of copyDamages.
func TestErasedStayErasedWhateverCopyIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range copyDamages {
		if !c.always && os.Getenv("ALMANAC_LEDGER_COPIES") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := startCopiesCluster(t)
			if shown := h.shown(); len(shown) > 0 {
				t.Fatalf("before the damage: %q", shown)
			}
			c.do(h)
			h.reopen()
			none := func(when string) {
				t.Helper()
				for _, what := range h.shown() {
					t.Errorf("%s: %s", when, what)
				}
			}
			none("after the damage")
			for round := range 2 {
				h.parts()
				if c.names { // what else was lost comes first
					h.carryOut(h.plan())
					none(fmt.Sprintf("round %d, repaired at once", round))
				}
				h.agreed()
				none(fmt.Sprintf("round %d, the copies agree", round))
				rep, err := h.quietProof(!c.names)
				if err != nil {
					t.Fatal(err)
				}
				if !rep.OK() && !c.names {
					t.Errorf("round %d: verify says %d missing, %d doubled, %q", round, rep.Missing, rep.Doubled, rep.Problems)
				}
				none(fmt.Sprintf("round %d, verified", round))
				h.carryOut(h.plan())
				none(fmt.Sprintf("round %d, repaired", round))
				if !c.names || round > 0 {
					h.there(fmt.Sprintf("round %d", round))
				}
				h.stopAll()
				h.stop()
				h.run()
				h.reopen()
			}
			none("at the end")
			all, err := h.reg.WithThird(h.db).Ledgers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range h.erasures {
				i := slices.IndexFunc(all[job.Topic], func(e ledger.Erasure) bool { return e.ID == job.ID })
				if i < 0 || all[job.Topic][i].State != ledger.Erased || all[job.Topic][i].Rows != job.Rows {
					t.Errorf("erasure %s of %s, of %d rows, is not what it was: %+v", job.ID, job.Topic, job.Rows, all[job.Topic])
				}
			}
		})
	}
}

// agreed waits until the copies of the ledger agree and every erasure is carried out again.
func (h *copiesCluster) agreed() {
	h.t.Helper()
	reg := h.reg.WithThird(h.db)
	eventually(h.t, time.Minute, func() error {
		all, err := reg.Ledgers(h.t.Context())
		if err != nil {
			return err
		}
		behind, err := reg.Behind(h.t.Context(), all)
		if err == nil && len(behind) > 0 {
			err = fmt.Errorf("to be carried out again: %v", behind)
		}
		return err
	})
}

// quietProof is what verify says once it proves everything, or says the same for two seconds: longer where everything is to be proven,
// for who works at it may stand still meanwhile.
func (h *copiesCluster) quietProof(whole bool) (rep *verify.Report, err error) {
	h.t.Helper()
	last, since, still := "", time.Now(), 2*time.Second
	if whole {
		still = maxWait * 10 * time.Second
	}
	eventually(h.t, time.Minute, func() error {
		if rep, err = h.proof(""); err != nil {
			return err
		}
		if rep.OK() && rep.Pending == 0 {
			return nil
		}
		if text := fmt.Sprint(rep.Totals, rep.Problems); text != last {
			last, since = text, time.Now()
		}
		if time.Since(since) > still {
			return nil
		}
		return fmt.Errorf("not quiet yet: %s", last)
	})
	return rep, err
}
