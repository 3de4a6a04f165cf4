package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

func (c *check) nats(ctx context.Context) bool {
	node := c.node()
	err := node.err
	c.nc, c.reg = node.nc, node.reg
	if c.nc != nil {
		c.natsRights(ctx)
	}
	if err != nil {
		do := "start the server, or give another by --nats"
		switch {
		case errors.Is(err, registry.ErrNoRegistry), errors.Is(err, schemas.ErrRestoring): // which says what to do
			do = ""
		case isStoreOff(err):
			do = doStoreOff
		}
		c.result("NATS", err, do, "")
		if c.nc == nil && !errors.Is(err, nats.ErrAuthorization) && !errors.Is(err, nats.ErrAuthExpired) { // it answers then
			c.since(query.ServerNATS)
		}
		return false
	}
	rtt, err := c.nc.RTT()
	c.result("NATS", err, "", "%s at %s, %s away", c.nc.ConnectedServerVersion(), privacy.MaskedURL(c.cfg.NATSURL), rtt.Round(time.Microsecond))
	info, err := streams.Asked(ctx, c.reg.JetStream().Conn(), c.reg.JetStream().AccountInfo)
	if err != nil {
		c.result("JetStream", err, doStoreOff, "")
		return errors.Is(err, streams.ErrDenied) // the others may be allowed
	}
	if err := streams.Probe(ctx, c.reg.JetStream()); err != nil {
		c.storeOff = !errors.Is(err, streams.ErrDenied)
		c.result("JetStream", err, doStoreOff, "")
		return true
	}
	c.note("JetStream", OK, "", "%d streams, %s on disk", info.Streams, schemas.FormatBytes(float64(info.Store)))
	return true
}

// streams checks each against the promise, and how full they are.
func (c *check) streams(ctx context.Context) {
	js := c.reg.JetStream()
	for _, name := range []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers, schemas.KVStream} {
		stream, err := streams.Open(ctx, js, name)
		if err != nil {
			c.result("stream "+name, err, "start almanac up or almanac router once: they create it", "")
			return
		}
		info := stream.CachedInfo()
		r := streamUsage{used: info.State.Bytes, limit: info.Config.MaxBytes, keys: info.State.NumSubjects}
		c.usage[name] = r
		status, do := r.result(name)
		if name == schemas.KVStream {
			name = "REGISTRY"
		}
		c.note("stream "+name, status, do, "%d messages, %s", info.State.Msgs, r)
		c.copies(name, streams.ReplicasOf(info))
	}
	// The copies of entries are a bucket of their own, with copies of its own.
	if info, err := streams.Info(ctx, js, schemas.CopiesStream); err == nil { // registry.Setup says where it is missing
		c.copies(schemas.CopiesStream, streams.ReplicasOf(info))
	}
	// All exist, so this creates nothing and only compares.
	limits := c.cfg.Limits
	limits.Said = schemas.SaidBounds{}
	_, err := registry.Setup(ctx, c.nc, limits)
	c.result("promise", err, "", "the streams refuse when full, never drop, and are on disk")
	topics, err := c.reg.Topics(ctx)
	if c.result("registry", err, "", "%d topics", len(topics)) && len(topics) == 0 {
		c.note("topics", Warn, "declare one: almanac topics apply app", "there is no topic, so nothing can be sent")
	}
}

// copies says where a stream lacks some.
func (c *check) copies(name string, r streams.Replicas) {
	if r.Whole() {
		return
	}
	status, then := Warn, "the next server that dies stops writes"
	if r.Survives() {
		then = "it goes on when one more dies"
	}
	who := strings.Join(slices.Concat(r.Away, r.Behind), ", ")
	do := "bring back or wait for: " + who
	if len(r.Away) == 0 {
		do = fmt.Sprintf("wait: %s has %d messages to get", who, r.Lag)
	}
	c.note("copies of "+name, status, do, "%s have all of it; %s", r, then)
}

// members looks for live routers and sinks by the age of their leases, on the
// clock of this machine.
func (c *check) members(ctx context.Context) {
	for _, role := range []string{schemas.RoleRouter, schemas.RoleSink} {
		live, err := c.reg.ListMembers(ctx, role)
		switch {
		case err != nil:
			c.result(role+"s", err, "", "")
		case len(live) == 0:
			c.note(role+"s", Fail, "start almanac up, or almanac "+role+"; one that runs names in its log the right that it lacks", "none is alive: events are accepted and wait")
		default:
			c.note(role+"s", OK, "", "%d alive", len(live))
		}
	}
}
