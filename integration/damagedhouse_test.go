package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// endNoted waits until the janitor noted the end of EVENTS: what the stream loses above
// that, a second's worth, is named by nothing (docs/limits.md).
func (h *damagedCluster) endNoted() {
	h.t.Helper()
	eventually(h.t, time.Minute, func() error {
		last, err := streams.LastSeq(h.t.Context(), h.reg.JetStream(), schemas.StreamEvents)
		if err != nil {
			return err
		}
		end, _, err := h.reg.End(h.t.Context(), schemas.StreamEvents)
		if err == nil && end.Seq != last {
			err = fmt.Errorf("message %d is noted as the end, want %d", end.Seq, last)
		}
		return err
	})
}

// damagedPart is the part of the table that an answer names as damaged, or one that
// cannot be read whole: verify does not read every column.
func (h *damagedCluster) damagedPart(err error) (table, part string) {
	h.t.Helper()
	if err == nil {
		err = h.readWhole()
	}
	var refused *tables.Error
	if errors.As(err, &refused) {
		return refused.DamagedPart()
	}
	return "", ""
}

// readWhole reads every column of every row.
func (h *damagedCluster) readWhole() error {
	body, err := h.db.Select(h.t.Context(), &tables.Select{SQL: fmt.Sprintf("SELECT sum(cityHash64(*)) FROM %s FORMAT TSV", h.table("app"))})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// speak publishes n events that have numbers of their own.
func (h *damagedCluster) speak(n int) {
	h.t.Helper()
	p := h.producer("app", func(c *producer.Config) { c.Linger = -1 })
	for range n {
		if err := p.Publish(h.t.Context(), producer.Event{Message: fmt.Sprint(h.said), UserID: fmt.Sprint("u-", h.said)}); err != nil {
			h.t.Fatal(err)
		}
		h.said++
	}
	if err := p.Close(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// remember keeps what an older copy is made of.
func (h *damagedCluster) remember() {
	h.t.Helper()
	h.marks = map[string][]byte{}
	for _, m := range h.messages(schemas.StreamShards, schemas.SubjectsRouted) {
		h.marks[m.Subject] = m.Data
	}
	h.parts = h.partNames()
	if h.how != "older copy" {
		return
	}
	h.stop()
	h.older = filepath.Join(h.t.TempDir(), "older")
	if err := os.CopyFS(h.older, os.DirFS(h.dir)); err != nil {
		h.t.Fatal(err)
	}
	h.run()
	h.reopen()
}

func (h *damagedCluster) partNames() (names []string) {
	h.t.Helper()
	rows, err := h.hand.Conn().Query(h.t.Context(), fmt.Sprintf("SELECT name FROM system.parts WHERE database = '%s' AND table = 'app' AND active ORDER BY min_block_number, name", h.srv.Database))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			h.t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// reopen connects the registry after a restart, as `almanac up` does. It reports
// whether that refused because the registry is lost, and then makes an empty one, as
// `almanac repair` does.
func (h *damagedCluster) reopen() (lost bool) {
	h.t.Helper()
	limits := schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}
	eventually(h.t, 10*time.Second, func() (err error) { // NATS has just begun
		if h.reg, err = registry.Setup(h.t.Context(), h.connect(), limits); errors.Is(err, registry.ErrLost) {
			lost = true
			h.reg, err = registry.CreateBucket(h.t.Context(), h.connect(), limits)
		}
		return err
	})
	return lost
}

// readable are the events that are in the table or in a frame that one of the streams
// gives.
func (h *damagedCluster) readable() map[string]bool {
	h.t.Helper()
	out := map[string]bool{}
	for m := range h.inTable() {
		out[m] = true
	}
	topic := newTopic("app")
	topic.Lanes = 2
	declared, err := topic.Declared()
	if err != nil {
		h.t.Fatal(err)
	}
	var reader frame.Reader
	for stream, filter := range map[string]string{schemas.StreamEvents: schemas.SubjectsEvents, schemas.StreamShards: schemas.SubjectsShards} {
		for _, m := range h.messages(stream, filter) {
			f, err := schemas.ParseFrame(m.Header)
			if err != nil || reader.Open(m.Data, &declared, f.Schema) != nil {
				continue
			}
			for i := range reader.Rows() {
				out[string(reader.Event(i).Message)] = true
			}
		}
	}
	return out
}

// inTable says how often each event is stored; one that cannot be read counts as empty.
func (h *damagedCluster) inTable() map[string]int {
	h.t.Helper()
	out := map[string]int{}
	rows, err := h.hand.Conn().Query(h.t.Context(), fmt.Sprintf("SELECT message, count() FROM %s GROUP BY message", h.table("app")))
	if err != nil {
		h.logf("reading the table: %v", err)
		return out
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var m string
		var n uint64
		if err := rows.Scan(&m, &n); err != nil {
			h.t.Fatal(err)
		}
		out[m] = int(n)
	}
	if err := rows.Err(); err != nil {
		h.logf("reading the table: %v", err)
		clear(out)
	}
	return out
}

// quiet waits until everything is proven, or until verify says the same for a while: longer
// while events are pending, which a busy machine may route and store late.
func (h *damagedCluster) quiet() (rep *verify.Report, err error) {
	h.t.Helper()
	same, last := time.Now(), ""
	eventually(h.t, 2*time.Minute, func() error {
		rep, err = h.proof("")
		if err == nil && rep.OK() && rep.Pending == 0 {
			return nil
		}
		still := 8 * time.Second
		if err != nil || rep.Pending > 0 {
			still = 20 * time.Second
		}
		text := fmt.Sprint(err)
		if err == nil {
			data, _ := json.Marshal(rep)
			text = string(data)
		}
		if text != last {
			same, last = time.Now(), text
		}
		if time.Since(same) > still {
			return nil
		}
		return fmt.Errorf("not settled yet: %.500s", text)
	})
	return rep, err
}
