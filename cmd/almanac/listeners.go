package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/syslog"
)

// The ports that clients of these protocols usually take; those of syslog need no
// privileges.
const (
	defaultElasticPort   = 9200
	defaultSyslogPort    = 1514
	defaultSyslogTLSPort = 6514
)

// shippers are the listeners that are off unless an address is given.
type shippers struct {
	elastic   net.Listener
	syslogTCP net.Listener
	syslogTLS net.Listener
	syslogUDP net.PacketConn
	secure    *tls.Config
}

// listenShippers takes the addresses that are configured.
func listenShippers(s *settings) (*shippers, error) {
	sh := &shippers{}
	var err error
	for _, l := range []struct {
		name, address string
		port          int
		to            *net.Listener
	}{
		{"elastic", s.Elastic, defaultElasticPort, &sh.elastic},
		{"syslog_tcp", s.SyslogTCP, defaultSyslogPort, &sh.syslogTCP},
		{"syslog_tls", s.SyslogTLS, defaultSyslogTLSPort, &sh.syslogTLS},
	} {
		if err = takeAddress(s, l.name, l.address, l.port, func(address string) (err error) {
			*l.to, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
			return err
		}); err != nil {
			sh.close()
			return nil, err
		}
	}
	err = takeAddress(s, "syslog_udp", s.SyslogUDP, defaultSyslogPort, func(address string) (err error) {
		sh.syslogUDP, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", address)
		return err
	})
	if err == nil && sh.syslogTLS != nil {
		err = sh.readCertificate(s)
	}
	if err != nil {
		sh.close()
		return nil, err
	}
	return sh, nil
}

// takeAddress listens where an address is given.
func takeAddress(s *settings, name, text string, port int, listen func(address string) error) error {
	if text == httpOff || text == "" {
		return nil
	}
	host, port, err := listenAddress(text, s.port(port))
	if err != nil {
		return configError{fmt.Errorf("%s: %w", name, err)}
	}
	if err := loopbackOnly(name, host); err != nil {
		return err
	}
	err = listen(net.JoinHostPort(host, fmt.Sprint(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %w: something already listens on %s port %d: stop it, or give another address", name, embedded.ErrPortInUse, host, port)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (sh *shippers) readCertificate(s *settings) error {
	if s.SyslogCert == "" || s.SyslogKey == "" {
		return configError{errors.New("syslog_tls: it needs a certificate: give syslog_cert and syslog_key")}
	}
	pair, err := tls.LoadX509KeyPair(s.SyslogCert, s.SyslogKey)
	if err != nil {
		return configError{fmt.Errorf("syslog_cert and syslog_key: %w", err)}
	}
	sh.secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}

func (sh *shippers) close() {
	for _, l := range []net.Listener{sh.elastic, sh.syslogTCP, sh.syslogTLS} {
		if l != nil {
			_ = l.Close()
		}
	}
	if sh.syslogUDP != nil {
		_ = sh.syslogUDP.Close()
	}
}

// configure gives the listeners to a gateway.
func (sh *shippers) configure(cfg *gateway.Config, s *settings, log zerolog.Logger) {
	cfg.Topic, cfg.MetricsTopic, cfg.SyslogTopic, cfg.SyslogZone = s.InputTopic, s.MetricsTopic, s.SyslogTopic, s.SyslogZone
	cfg.Elastic = sh.elastic
	if sh.syslogTCP != nil {
		cfg.Syslog.Streams = append(cfg.Syslog.Streams, gateway.Bounded(sh.syslogTCP, syslog.MaxConnections))
	}
	if sh.syslogTLS != nil {
		cfg.Syslog.Streams = append(cfg.Syslog.Streams, tls.NewListener(gateway.Bounded(sh.syslogTLS, syslog.MaxConnections), sh.secure))
	}
	if sh.syslogUDP != nil {
		cfg.Syslog.Packets = append(cfg.Syslog.Packets, sh.syslogUDP)
	}
	again := newRationer()
	cfg.OnSyslog = func(err error) {
		if more, ok := again.pass("syslog"); ok {
			log.Warn().Err(err).Int("more", more).Msg("syslog")
		}
	}
}

// name writes where they listen.
func (sh *shippers) name(a *embedded.Addresses) {
	if sh.elastic != nil {
		a.Elastic = "http://" + sh.elastic.Addr().String()
	}
	if sh.syslogTCP != nil {
		a.SyslogTCP = sh.syslogTCP.Addr().String()
	}
	if sh.syslogTLS != nil {
		a.SyslogTLS = sh.syslogTLS.Addr().String()
	}
	if sh.syslogUDP != nil {
		a.SyslogUDP = sh.syslogUDP.LocalAddr().String()
	}
}

// lines are those of the ready block.
func (sh *shippers) lines() (lines [][2]string) {
	var a embedded.Addresses
	sh.name(&a)
	for _, l := range [][2]string{{"Elastic", a.Elastic}, {"syslog TCP", a.SyslogTCP}, {"syslog TLS", a.SyslogTLS}, {"syslog UDP", a.SyslogUDP}} {
		if l[1] != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// shipperKeys are the settings of these inputs.
var shipperKeys = []string{"input_topic", "metrics_topic", "audit_reads", "audit_actor", "elastic", "syslog_tcp", "syslog_tls", "syslog_udp", "syslog_topic", "syslog_tz", "syslog_cert", "syslog_key"}
