package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Every part and every verb refuses servers on which another format is kept, with both numbers and the code of a
// configuration: a part does not wait for what cannot come.
func TestPartsRefuseAnotherFormat(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	limits := schemas.DefaultStreamLimits
	limits.EventsBytes, limits.ShardsBytes, limits.DocsBytes, limits.TimersBytes = 1<<30, 1<<30, 1<<30, 1<<30
	if _, err := registry.Setup(t.Context(), servers.NC(), limits); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(servers.NC(), jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), schemas.KVStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	b := newBox(t)
	for _, number := range []int{schemas.Format - 1, schemas.Format + 1} { // an upgrade across formats, and a downgrade
		other := strconv.Itoa(number)
		for key := range schemas.FormatMetadata() {
			cfg.Metadata[key] = other
		}
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		asked := []string{"router", "sink", "topics ls", "verify", "send app"}
		if number > schemas.Format {
			asked = append(asked, "setup", "timers run", "gateway --http 127.0.0.1:0 --otlp-http off --otlp-grpc off", "topics apply app", "lag", "shards", "query app", "replay app", "dead ls")
		}
		for _, args := range asked {
			out := b.run("", append(strings.Fields(args), "--nats", servers.NC().ConnectedUrl(), "--clickhouse", servers.HTTPDSN())...)
			if out.code != exitConfig || !strings.Contains(out.err, `has format "`+other+`"`) || !strings.Contains(out.err, "reads format "+strconv.Itoa(schemas.Format)) {
				t.Errorf("%s on format %s: exit %d: %s", args, other, out.code, out.err)
			}
		}
	}
}
