package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/schemas"
)

// rehearsal tries what a start with these settings would do first, by the start's own code, and leaves nothing. After a fault
// it goes on: all of them are said at once.
type rehearsal struct {
	s        *settings
	faults   []error
	warnings []string
	// alive says which process of these settings runs; empty: none. It has its ports, which is right: own are those that are
	// known, and all of them unless partly.
	alive  string
	own    map[string]bool
	partly bool
	opened []io.Closer
}

func (r *rehearsal) fault(err error) {
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// taken reports whether an address is taken by the process that runs by these settings. Where it may as well be another program, that is a
// warning.
func (r *rehearsal) taken(err error, host string, port int) bool {
	if r.alive == "" || !errors.Is(err, embedded.ErrPortInUse) {
		return false
	}
	if r.own[net.JoinHostPort(host, strconv.Itoa(port))] {
		return true
	}
	if r.partly {
		r.warn("%v. It is right where %s has it", err, r.alive)
	}
	return r.partly
}

func (r *rehearsal) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// rehearse tries all of it. What one value has wrong is its key's set (settings.go), and what its
// text has wrong settings.check. What a start does first is a method here, by the start's own code.
// What a NATS elsewhere says is checkStore. A fault exits 78, a warning does not.
func rehearse(ctx context.Context, s *settings) *rehearsal {
	r := &rehearsal{s: s}
	defer func() {
		for _, c := range r.opened {
			_ = c.Close()
		}
	}()
	r.findAlive(ctx)
	r.listeners()
	if !isURL(s.NATS) { // or the servers of an up are not started
		r.directories()
		r.servers(ctx)
	}
	r.files()
	return r
}

// aliveWait is more than a process of Almanac takes to say whether it is ready, and what else may listen there is given.
const aliveWait = 4 * time.Second

// findAlive looks for a process that runs by these settings.
func (r *rehearsal) findAlive(ctx context.Context) {
	if a, err := embedded.ReadAddresses(r.s.Data); err == nil {
		r.alive, r.own = fmt.Sprintf("the almanac up on %s (process %d)", r.s.Data, a.PID), map[string]bool{}
		for _, at := range []string{a.NATS, a.ClickHouseHTTP, a.ClickHouseTCP, a.HTTP, a.OTLPHTTP, a.OTLPGRPC, a.Elastic, a.SyslogTCP, a.SyslogTLS, a.SyslogUDP} {
			_, host, found := strings.Cut(at, "://")
			if !found {
				host = at
			}
			r.own[host] = true
		}
		return
	}
	if !isURL(r.s.NATS) { // an up would have written where it is: what answers at the usual address is another
		return
	}
	ctx, cancel := context.WithTimeout(ctx, aliveWait)
	defer cancel()
	if base, err := r.s.ownHTTP(); err == nil && r.s.HTTP != settingOff {
		if _, err := ops.Ask(ctx, base); err == nil {
			r.alive, r.partly = "the process of Almanac at "+base, true
			if host, port, err := listenAddress(r.s.HTTP, defaultHTTPPort); err == nil {
				r.own = map[string]bool{net.JoinHostPort(host, strconv.Itoa(port)): true}
			}
		}
	}
}

// listener is a setting that names an address to listen on.
type listener struct {
	name string
	text func(*settings) string
	port int
	// passed is one whose usual port may be taken: it is off then. off is one that is off where nothing is said.
	passed, off, packets bool
}

var listeners = []listener{
	{name: "http", text: func(s *settings) string { return s.HTTP }, port: defaultHTTPPort, passed: true},
	{name: "otlp_http", text: func(s *settings) string { return s.OTLPHTTP }, port: defaultOTLPHTTPPort, passed: true},
	{name: "otlp_grpc", text: func(s *settings) string { return s.OTLPGRPC }, port: defaultOTLPGRPCPort, passed: true},
	{name: "elastic", text: func(s *settings) string { return s.Elastic }, port: defaultElasticPort, off: true},
	{name: "syslog_tcp", text: func(s *settings) string { return s.SyslogTCP }, port: defaultSyslogPort, off: true},
	{name: "syslog_tls", text: func(s *settings) string { return s.SyslogTLS }, port: defaultSyslogTLSPort, off: true},
	{name: "syslog_udp", text: func(s *settings) string { return s.SyslogUDP }, port: defaultSyslogPort, off: true, packets: true},
}

// listeners takes each address, with the certificates and tokens that decide whether it may be open.
func (r *rehearsal) listeners() {
	d, err := r.opener()
	if err != nil {
		r.fault(err)
		return
	}
	r.opened = append(r.opened, closer(d.close))
	for _, l := range listeners {
		text := l.text(r.s)
		if text == settingOff || text == "" && l.off {
			continue
		}
		err := r.try(d, l, text)
		host, port, _ := listenAddress(text, r.s.port(l.port))
		switch {
		case r.taken(err, host, port):
		case l.passed && text == "" && errors.Is(err, embedded.ErrPortInUse):
			r.warn("%v. It would be off", err)
		default:
			r.fault(err)
		}
	}
	if r.s.SyslogTLS != "" && r.s.SyslogTLS != settingOff {
		_, err := d.openCerts("syslog", "syslog", certs.Config{Cert: r.s.SyslogCert, Key: r.s.SyslogKey, ClientCA: r.s.SyslogClientCA, Require: true})
		r.fault(err)
	}
	if !isURL(r.s.NATS) {
		config, err := r.s.natsConfig(map[string]string{"any": "any"}, d.openNATS)
		if err == nil {
			_, err = embedded.NewNATS(config)
		}
		if err == nil {
			err = embedded.CheckPort(config.Host, config.Port)
		}
		if err != nil && !r.taken(err, config.Host, config.Port) {
			r.fault(fmt.Errorf("the setting nats: %w", err)) // "nats: " begins errors of the library
		}
	}
	r.expiring(d.ends, time.Now())
}

// try takes an address and keeps it, so that two settings with one are found.
func (r *rehearsal) try(d *opener, l listener, text string) error {
	if l.packets {
		c, err := d.listenPacket(l.name, text, l.port)
		if err == nil {
			r.opened = append(r.opened, c)
		}
		return err
	}
	c, err := d.listen(l.name, text, l.port)
	if err == nil {
		r.opened = append(r.opened, c)
	}
	return err
}

// closer is a function that closes.
type closer func()

// Close calls it.
func (f closer) Close() error {
	f()
	return nil
}

// opener reads certificates and tokens as a start does. What a first start makes is made elsewhere, and removed.
func (r *rehearsal) opener() (*opener, error) {
	dir, err := os.MkdirTemp("", "almanac-check-")
	if err != nil {
		return nil, err
	}
	r.opened = append(r.opened, closer(func() { _ = os.RemoveAll(dir) }))
	local := filepath.Join(r.s.Data, embedded.LocalTokenName)
	if _, err := os.Stat(local); err != nil {
		local = filepath.Join(dir, embedded.LocalTokenName)
	}
	tokens, err := keep.Open(keep.Config{File: r.s.TokensFile, Text: r.s.Tokens, Local: local})
	if err != nil {
		r.fault(configError{err})
		if tokens, err = keep.Open(keep.Config{Text: r.s.Tokens}); err != nil {
			return nil, err
		}
	}
	return openerOf(r.s, zerolog.Nop(), tokens, dir)
}

// expireSoon is when a certificate that ends is a warning: a renewal that does not happen has two weeks to be seen.
const expireSoon = 14 * 24 * time.Hour

// expiring warns of certificates near their end, by the listeners that show them.
func (r *rehearsal) expiring(ends map[string]func() time.Time, now time.Time) {
	var names []string
	for name := range ends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if at := ends[name](); !at.IsZero() && at.Sub(now) < expireSoon {
			r.warn("the certificate of %s ends %s, in %.0f days: renew it", name, at.UTC().Format(time.RFC3339), at.Sub(now).Hours()/24)
		}
	}
}

// directories are those of an up.
func (r *rehearsal) directories() {
	short, err := embedded.CheckDataDir(r.s.Data)
	r.fault(err)
	if short != nil {
		r.warn("%v. A start goes on, and stores nothing until there is room", short)
	}
	r.fault(embedded.CheckColdDir(r.s.Data, r.s.ColdDir))
	r.sizes()
}

// sizes compares what was said of the streams with the disk they are on.
func (r *rehearsal) sizes() {
	room, err := embedded.DefaultStoreLimit(embedded.NATSDir(r.s.Data))
	if err != nil {
		return // said of the directory
	}
	room = room / 3 * 4 // all of it
	if said := r.s.EventsBytes + r.s.ShardsBytes + r.s.DocsBytes + r.s.TimersBytes; said > room {
		r.warn("events_bytes, shards_bytes, docs_bytes and timers_bytes are %s, and the disk of %s has %s for them: it is full before they are",
			schemas.FormatBytes(float64(said)), r.s.Data, schemas.FormatBytes(float64(room)))
	}
}

// servers are the ClickHouse of an up.
func (r *rehearsal) servers(ctx context.Context) {
	engine, err := embedded.Find(ctx, r.s.ClickHouse, nil)
	if err != nil { // not a fault of the settings
		r.warn("almanac up would not start: %v", err)
		return
	}
	config := r.s.clickHouseConfig(engine)
	if _, err := embedded.NewClickHouse(config); err != nil {
		r.fault(fmt.Errorf("clickhouse: %w", err))
		return
	}
	if engine.Kind == embedded.EngineRemote {
		return
	}
	for _, port := range []int{config.TCPPort, config.HTTPPort} {
		const host = "127.0.0.1"
		if err := embedded.CheckPort(host, port); err != nil && !r.taken(err, host, port) {
			r.fault(fmt.Errorf("clickhouse: %w", err))
		}
	}
}

// files are those that connections to a NATS elsewhere read.
func (r *rehearsal) files() {
	if !isURL(r.s.NATS) {
		return
	}
	if r.s.NATSCert != "" || r.s.NATSKey != "" {
		ends, err := certs.Pair(r.s.NATSCert, r.s.NATSKey)
		if err != nil {
			r.fault(fmt.Errorf("nats_cert and nats_key: %w", err))
		} else {
			r.expiring(map[string]func() time.Time{"nats_cert": func() time.Time { return ends }}, time.Now())
		}
	}
	if r.s.NATSCA != "" {
		text, err := os.ReadFile(r.s.NATSCA)
		if err == nil {
			_, err = certs.Pool(text)
		}
		if err != nil {
			r.fault(fmt.Errorf("nats_ca: %w", err))
		}
	}
	if r.s.NATSCreds != "" {
		if err := tryCredentials(r.s.NATSCreds); err != nil {
			r.fault(fmt.Errorf("nats_creds: %w", err))
		}
	}
}

// tryCredentials reads a file of NATS credentials as a connection does, and signs something by it.
func tryCredentials(path string) error {
	var o nats.Options
	if err := nats.UserCredentials(path)(&o); err != nil {
		return err
	}
	if _, err := o.UserJWT(); err != nil {
		return err
	}
	if _, err := o.SignatureCB([]byte("a nonce")); err != nil {
		return fmt.Errorf("%s does not have a user's seed, as a file of NATS credentials does: %w", path, err)
	}
	return nil
}
