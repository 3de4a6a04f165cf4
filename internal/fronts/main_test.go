package fronts

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

var testLimits = schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, DocsBytes: 64 << 20, Replicas: 1}

// timeout bounds a test that waits.
func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// openOn declares the streams through the server's own connection, and opens a writer of
// DOCS through nc.
func openOn(t testing.TB, srv *embeddedtest.Servers, nc *nats.Conn, cfg Config) (*Writer, jetstream.JetStream) {
	t.Helper()
	if _, err := registry.Setup(t.Context(), srv.NC(), testLimits); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), js, schemas.StreamDocs, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w, js
}

// open is openOn with a server of its own.
func open(t testing.TB, cfg Config, opts ...embeddedtest.Option) (*Writer, jetstream.JetStream) {
	t.Helper()
	srv := embeddedtest.Start(t, append(opts, embeddedtest.WithoutClickHouse())...)
	return openOn(t, srv, srv.NC(), cfg)
}

// record is a record of a document named id, which expects a sequence.
func record(id string, expect uint64) Record {
	return Record{
		Subject: schemas.DocSubject("customers", 0, id), Expect: expect, Data: []byte(`{"id":"` + id + `"}`),
		Header: nats.Header{schemas.HeaderOp: {schemas.OpStored}, schemas.HeaderBy: {fmt.Sprint("by ", id)}},
	}
}

// connect connects to a proxy, on a machine at work, and again whenever it is cut.
func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(20*time.Second), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
