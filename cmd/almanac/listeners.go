package main

import (
	"cmp"
	"crypto/tls"
	"net"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access/certs"
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
	certs     *certs.Files // of syslog TLS; the opener closes it
	opener    *opener
}

// listenShippers takes the addresses that are configured.
func listenShippers(d *opener) (sh *shippers, err error) {
	s := d.s
	sh = &shippers{opener: d}
	for _, l := range []struct {
		name, address string
		port          int
		to            *net.Listener
	}{
		{"elastic", s.Elastic, defaultElasticPort, &sh.elastic},
		{"syslog_tcp", s.SyslogTCP, defaultSyslogPort, &sh.syslogTCP},
		{"syslog_tls", s.SyslogTLS, defaultSyslogTLSPort, &sh.syslogTLS},
	} {
		if err == nil {
			*l.to, err = d.listen(l.name, cmp.Or(l.address, settingOff), l.port)
		}
	}
	if err == nil {
		sh.syslogUDP, err = d.listenPacket("syslog_udp", cmp.Or(s.SyslogUDP, settingOff), defaultSyslogPort)
	}
	if err == nil && sh.syslogTLS != nil {
		sh.certs, err = d.openCerts("syslog", "syslog", certs.Config{Cert: s.SyslogCert, Key: s.SyslogKey, ClientCA: s.SyslogClientCA, Require: true})
	}
	if err != nil {
		sh.close()
		return nil, err
	}
	return sh, nil
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
	cfg.Syslog.Allow = s.SyslogAllow
	allows := func(from net.Addr) bool { // before it may end another for being idle
		if cfg.Syslog.Allows(from) {
			return true
		}
		cfg.OnError(syslog.NotAllowed(from))
		return false
	}
	bounded := func(l net.Listener) net.Listener {
		return gateway.Bounded(l, gateway.Bound{What: "syslog connections", Connections: syslog.MaxConnections, Idle: syslog.Idle, Allows: allows, OnLimit: cfg.OnLimit})
	}
	if sh.syslogTCP != nil {
		cfg.Syslog.Streams = append(cfg.Syslog.Streams, bounded(sh.syslogTCP))
	}
	if sh.syslogTLS != nil {
		cfg.Syslog.Streams = append(cfg.Syslog.Streams, tls.NewListener(bounded(sh.syslogTLS), sh.certs.TLS()))
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
		a.Elastic = sh.opener.url(sh.elastic)
	}
	if sh.syslogTCP != nil {
		a.SyslogTCP = here(sh.syslogTCP.Addr())
	}
	if sh.syslogTLS != nil {
		a.SyslogTLS = here(sh.syslogTLS.Addr())
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
var shipperKeys = []string{"input_topic", "metrics_topic", "audit_reads", "audit_actor", "elastic", "syslog_tcp", "syslog_tls", "syslog_udp", "syslog_topic", "syslog_tz", "syslog_cert", "syslog_key", "syslog_client_ca", "syslog_allow", "tls_cert", "tls_key", "tls_client_ca", "acme_hosts", "acme_directory", "acme_ca", "insecure", "insecure_hosts", "loopback_tokens"}
