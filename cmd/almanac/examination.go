package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// examination is one run of doctor: the checks in the order in which each makes
// sense, and what they found.
type examination struct {
	s     *settings
	c     *session
	found []finding
	rooms map[string]room // of the streams
	// storeOff: NATS answers and stores nothing.
	storeOff bool
}

// examinationTime bounds all checks together.
const examinationTime = 30 * time.Second

func (e *examination) close() {
	if e.c != nil {
		_ = e.c.Close()
	}
}

func (e *examination) all(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examinationTime)
	defer cancel()
	d, err := findEndpoints(e.s, true)
	where := "of the up on " + d.dir
	if d.dir == "" {
		where = "named by the settings"
	}
	if !e.verdict("addresses", err, "", "%s: NATS %s, ClickHouse %s", where, schemas.MaskedURL(d.nats), schemas.MaskedURL(d.clickhouse)) {
		return
	}
	e.process(ctx, d)
	if e.nats(ctx, d) {
		e.streams(ctx)
		e.members(ctx)
		e.retention(ctx, time.Now())
	}
	stores := e.clickhouse(ctx, d)
	if stores && e.c != nil {
		e.account(ctx, d)
		e.lag(ctx)
		e.rebuilds(ctx)
		e.fields(ctx)
	}
	e.producers(stores)
	e.disk(d)
}

// process asks the `up` itself.
func (e *examination) process(ctx context.Context, d endpoints) {
	if d.http == "" {
		return
	}
	var ready struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
		Sync    string   `json:"sync"`
	}
	err := getJSON(ctx, d.http+"/readyz", &ready)
	if err == nil && !ready.Ready {
		err = errors.New(strings.Join(ready.Reasons, "; "))
	}
	if !e.verdict("process", err, "look at the log of almanac up", "%s says it is ready", d.http) {
		return
	}
	if ready.Sync == syncAlways {
		e.note("fsync", good, "", "NATS writes to disk before it acknowledges")
		return
	}
	e.note("fsync", warns, "see that the NATS server has sync_interval: always", "NATS runs elsewhere; whether it writes to disk before it acknowledges cannot be told from here")
}

func (e *examination) nats(ctx context.Context, d endpoints) bool {
	c, err := openRegistry(ctx, e.s, d)
	if err != nil {
		do := "start the server, or give another by --nats"
		switch {
		case errors.Is(err, registry.ErrNoRegistry):
			do = ""
		case isStoreOff(err):
			do = doStoreOff
		}
		e.verdict("NATS", err, do, "")
		return false
	}
	e.c = c
	rtt, err := c.nc.RTT()
	e.verdict("NATS", err, "", "%s at %s, %s away", c.nc.ConnectedServerVersion(), schemas.MaskedURL(d.nats), rtt.Round(time.Microsecond))
	info, err := c.reg.JetStream().AccountInfo(ctx)
	if err != nil {
		e.verdict("JetStream", err, doStoreOff, "")
		return false
	}
	if err := streams.Probe(ctx, c.reg.JetStream()); err != nil {
		e.storeOff = true
		e.verdict("JetStream", err, doStoreOff, "")
		return true
	}
	e.note("JetStream", good, "", "%d streams, %s on disk", info.Streams, humanBytes(float64(info.Store)))
	return true
}

// streams checks both against the promise, and how full they are.
func (e *examination) streams(ctx context.Context) {
	js := e.c.reg.JetStream()
	for _, name := range []string{schemas.StreamEvents, schemas.StreamShards} {
		stream, err := streams.Open(ctx, js, name)
		if err != nil {
			e.verdict("stream "+name, err, "start almanac up or almanac router once: they create it", "")
			return
		}
		info := stream.CachedInfo()
		r := room{used: info.State.Bytes, limit: info.Config.MaxBytes}
		e.rooms[name] = r
		status, do := r.verdict(name)
		e.note("stream "+name, status, do, "%d messages, %s", info.State.Msgs, r)
	}
	// Both exist, so this creates nothing and only compares.
	_, err := registry.Setup(ctx, e.c.nc, streamLimits(e.s, schemas.DefaultStreamLimits))
	e.verdict("promise", err, "", "the streams refuse when full, never drop, and are on disk")
	topics, err := e.c.reg.Topics(ctx)
	if e.verdict("registry", err, "", "%d topics", len(topics)) && len(topics) == 0 {
		e.note("topics", warns, "declare one: almanac topics apply app", "there is no topic, so nothing can be sent")
	}
}

// members looks for live routers and sinks by the age of their leases, on the
// clock of this machine.
func (e *examination) members(ctx context.Context) {
	kv, err := e.c.reg.JetStream().KeyValue(ctx, schemas.Bucket)
	for _, role := range []string{"router", "sink"} {
		n := 0
		if err == nil {
			n, err = liveMembers(ctx, kv, role)
		}
		switch {
		case err != nil:
			e.verdict(role+"s", err, "", "")
		case n == 0:
			e.note(role+"s", fails, "start almanac up, or almanac "+role, "none is alive: events are accepted and wait")
		default:
			e.note(role+"s", good, "", "%d alive", n)
		}
	}
}

func liveMembers(ctx context.Context, kv jetstream.KeyValue, role string) (n int, err error) {
	keys, err := kv.ListKeysFiltered(ctx, schemas.LeaseKeys(role))
	if err != nil {
		return 0, err
	}
	for key := range keys.Keys() {
		lease, err := kv.Get(ctx, key)
		// A lease that is gone meanwhile is that of a member that left.
		if err == nil && time.Since(lease.Created()) < registry.LeaseExpiry {
			n++
		}
	}
	return n, nil
}

func (e *examination) clickhouse(ctx context.Context, d endpoints) bool {
	db, err := tables.Open(d.clickhouse)
	if err != nil {
		e.verdict("ClickHouse", err, "", "")
		return false
	}
	if e.c != nil {
		e.c.db = db
	} else {
		defer func() { _ = db.Close() }()
	}
	version, err := db.Ping(ctx)
	do := "start the server, or give another by --clickhouse"
	if errors.Is(err, tables.ErrOldServer) {
		do = "update it"
	}
	if !e.verdict("ClickHouse", err, do, "%s at %s, database %s", version, db.Address(), db.Database) {
		return false
	}
	// Not being allowed to ask is no finding.
	if wait, err := db.ReceiveTimeout(ctx); err == nil && wait > longestReceive {
		e.note("ClickHouse", warns, "set http_receive_timeout to 5 in the profile of Almanac's user",
			"it waits %s for the rest of an insert: a sink that freezes in the middle of one holds its shard up so long", wait)
	}
	return true
}

// account tries the account that people's SQL runs under: it must read, and must
// not write.
func (e *examination) account(ctx context.Context, d endpoints) {
	if d.readerUser == "" {
		e.note("SQL account", good, "", "none known: almanac sql uses the given one, with each statement made read-only")
		return
	}
	ask := func(sql string) error {
		body, err := e.c.db.Select(ctx, &tables.Select{SQL: sql, User: d.readerUser, Password: d.readerPassword})
		if err == nil {
			err = body.Close()
		}
		return err
	}
	if err := ask("SELECT count() FROM " + schemas.QuotedTable(e.c.db.Database, schemas.ViewShards)); err != nil {
		e.verdict("SQL account", err, "", "")
		return
	}
	if err := ask("CREATE TABLE " + schemas.QuotedTable(e.c.db.Database, "almanac_doctor") + " (x Int8) ENGINE = Memory"); !errors.As(err, new(*tables.Error)) {
		e.note("SQL account", fails, "restart almanac up, which writes the accounts again", "%s was allowed to make a table", d.readerUser)
		return
	}
	e.note("SQL account", good, "", "%s reads and cannot write; almanac sql --print-dsn has its address", d.readerUser)
}

// lag reads every table's heads, so it also shows that the tables answer.
func (e *examination) lag(ctx context.Context) {
	r, err := query.New(e.c.nc, e.c.reg, e.c.db)
	var rows []query.ShardRow
	if err == nil {
		rows, err = r.Shards(ctx, "", "")
	}
	if err != nil {
		e.verdict("tables", err, "", "")
		return
	}
	var frames, stored uint64
	for _, s := range rows {
		frames, stored = frames+s.Frames, stored+min(s.Stored, s.Frames)
	}
	e.note("tables", good, "", "%d shards, %d frames", len(rows), frames)
	if pending := frames - stored; pending == 0 {
		e.note("lag", good, "", "everything routed is stored")
	} else {
		e.note("lag", good, "", "%d frames are on their way to ClickHouse", pending)
	}
	letters, err := r.Dead(ctx, "", 1)
	switch {
	case err != nil:
		e.verdict("dead letters", err, "", "")
	case len(letters) > 0:
		e.note("dead letters", warns, "almanac dead ls", "there are some: the first is of topic %s, %s", letters[0].Topic, letters[0].Reason)
	default:
		e.note("dead letters", good, "", "none")
	}
}

// lowDisk is where an `up` should be given more: merges need room for a while.
const lowDisk = 2 << 30

func (e *examination) disk(d endpoints) {
	if d.dir == "" {
		return
	}
	free, err := embedded.FreeBytes(d.dir)
	if e.verdict("disk", err, "", "%s free for %s", humanBytes(float64(free)), d.dir) && free < lowDisk {
		e.note("disk", warns, "free some", "less than %s", humanBytes(lowDisk))
	}
}

// getJSON asks Almanac's own HTTP; a 503 has a body worth reading too.
func getJSON(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: 2 * httpPatience}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
