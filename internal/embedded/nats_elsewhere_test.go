package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A server elsewhere allows what that of up allows.
func TestNATSServerConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(NATSServerConfig(dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	there, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	here, err := NATSConfig{Dir: dir}.withDefaults().options(4222, nil)
	if err != nil {
		t.Fatal(err)
	}
	type bounds struct {
		JetStream, Sync           bool
		Dir                       string
		Payload                   int32
		Pending, BufferedBytes    int64
		Connections, BufferedMsgs int
		Limits                    server.JSLimitOpts
	}
	of := func(o *server.Options) bounds {
		return bounds{o.JetStream, o.SyncAlways, o.StoreDir, o.MaxPayload, o.MaxPending, o.StreamMaxBufferedSize, o.MaxConn, o.StreamMaxBufferedMsgs, o.JetStreamLimits}
	}
	if got, want := of(there), of(here); got != want {
		t.Errorf("elsewhere %+v\nhere      %+v", got, want)
	}
}
