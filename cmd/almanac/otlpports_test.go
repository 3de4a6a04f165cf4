package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
)

// OTLP's own port may be a Collector's: then the input is off, with a warning that says how
// to have it. An address that was configured must be free.
func TestOTLPPortInUse(t *testing.T) {
	own := fmt.Sprintf("127.0.0.1:%d", defaultOTLPHTTPPort)
	if l, err := net.Listen("tcp", own); err == nil { // else something has it, which is as good
		t.Cleanup(func() { _ = l.Close() })
	}
	var said bytes.Buffer
	dir := t.TempDir()
	listen := func(s *settings, log zerolog.Logger) (otlpInputs, error) {
		s.Data = dir
		d, err := newOpener(s, log)
		if err != nil {
			t.Fatal(err)
		}
		return listenOTLP(d)
	}
	o, err := listen(&settings{Ports: portsDefault, OTLPGRPC: settingOff}, zerolog.New(&said))
	if err != nil || o.http != nil {
		t.Fatalf("a default port that is in use: %v, %v", o.http, err)
	}
	for _, words := range []string{`"level":"warn"`, "port 4318", "--otlp-http", "It is off in this process"} {
		if !strings.Contains(said.String(), words) {
			t.Errorf("%q is not in %s", words, said.String())
		}
	}
	if _, err = listen(&settings{Ports: portsDefault, OTLPHTTP: own, OTLPGRPC: settingOff}, zerolog.Nop()); !errors.Is(err, embedded.ErrPortInUse) {
		t.Errorf("a configured port that is in use: %v", err)
	}
	o, err = listen(&settings{Ports: portsAuto}, zerolog.Nop())
	if err != nil || o.http == nil || o.grpc == nil {
		t.Fatalf("free ports: %+v, %v", o, err)
	}
	o.close()
}
