package main

import (
	"cmp"
	"errors"
	"net"
	"strings"

	"github.com/almanac-events/almanac/internal/embedded"
)

// otlpInputs are the listeners for OpenTelemetry's exporters; one that is nil is off.
type otlpInputs struct {
	http, grpc net.Listener
	opener     *opener
}

// Ports that OpenTelemetry's exporters use when nothing is said.
const (
	defaultOTLPHTTPPort = 4318
	defaultOTLPGRPCPort = 4317
)

// listenOTLP takes the addresses. A default port that something else has is passed over
// with a warning, because it may be a Collector's; a configured one is an error.
func listenOTLP(d *opener) (o otlpInputs, err error) {
	o.opener = d
	for _, l := range []struct {
		to        *net.Listener
		key, text string
		port      int
	}{{&o.http, "otlp_http", d.s.OTLPHTTP, defaultOTLPHTTPPort}, {&o.grpc, "otlp_grpc", d.s.OTLPGRPC, defaultOTLPGRPCPort}} {
		*l.to, err = d.listen(l.key, l.text, l.port)
		if errors.Is(err, embedded.ErrPortInUse) && l.text == "" {
			d.log.Warn().Msgf("%v. It is off in this process", err)
			err = nil
		}
		if err != nil {
			o.close()
			return otlpInputs{}, err
		}
	}
	return o, nil
}

func (o otlpInputs) close() {
	for _, l := range []net.Listener{o.http, o.grpc} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// name writes where they listen.
func (o otlpInputs) name(a *embedded.Addresses) {
	if o.http != nil {
		a.OTLPHTTP = o.opener.url(o.http)
	}
	if o.grpc != nil {
		a.OTLPGRPC = here(o.grpc.Addr())
	}
}

// text is where they listen, for people.
func (o otlpInputs) text() string {
	text := ""
	if o.http != nil {
		text = o.opener.url(o.http)
	}
	if o.grpc != nil {
		text += ", gRPC " + here(o.grpc.Addr())
	}
	return cmp.Or(strings.TrimPrefix(text, ", "), "off")
}
