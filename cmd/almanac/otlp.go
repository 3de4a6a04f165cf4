package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
)

// otlpInputs are the listeners for OpenTelemetry's exporters; one that is nil is off.
type otlpInputs struct{ http, grpc net.Listener }

// Ports that OpenTelemetry's exporters use when nothing is said.
const (
	defaultOTLPHTTPPort = 4318
	defaultOTLPGRPCPort = 4317
)

// listenOTLP takes the addresses. A default port that something else has is passed over
// with a warning, because it may be a Collector's; a configured one is an error.
func listenOTLP(s *settings, log zerolog.Logger) (o otlpInputs, err error) {
	for _, l := range []struct {
		to        *net.Listener
		key, text string
		port      int
	}{{&o.http, "otlp_http", s.OTLPHTTP, defaultOTLPHTTPPort}, {&o.grpc, "otlp_grpc", s.OTLPGRPC, defaultOTLPGRPCPort}} {
		*l.to, err = listenOn(l.key, l.text, s.port(l.port))
		if errors.Is(err, embedded.ErrPortInUse) && l.text == "" {
			log.Warn().Msgf("%v. It is off in this process", err)
			err = nil
		}
		if err != nil {
			o.close()
			return otlpInputs{}, err
		}
	}
	return o, nil
}

// listenOn takes an address of loopback; nil when it is off.
func listenOn(key, text string, port int) (net.Listener, error) {
	if text == httpOff {
		return nil, nil
	}
	host, port, err := listenAddress(text, port)
	if err != nil {
		return nil, configError{fmt.Errorf("%s: %w", key, err)}
	}
	if err := loopbackOnly(key, host); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		flag := findKey(key).flag()
		return nil, fmt.Errorf("%s: %w: something already listens on %s port %d: stop it, pass another address by --%s, or pass --%s off or --ports auto", key, embedded.ErrPortInUse, host, port, flag, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
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
		a.OTLPHTTP = "http://" + o.http.Addr().String()
	}
	if o.grpc != nil {
		a.OTLPGRPC = o.grpc.Addr().String()
	}
}

// text is where they listen, for people.
func (o otlpInputs) text() string {
	text := ""
	if o.http != nil {
		text = "http://" + o.http.Addr().String()
	}
	if o.grpc != nil {
		text += ", gRPC " + o.grpc.Addr().String()
	}
	return cmp.Or(strings.TrimPrefix(text, ", "), "off")
}
