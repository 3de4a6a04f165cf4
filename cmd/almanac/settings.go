package main

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs/acme"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// settings are the effective values of every key.
type settings struct {
	Data            string
	ColdDir         string
	Ports           string
	HTTP            string
	OTLPHTTP        string
	OTLPGRPC        string
	OTLPEachTime    bool
	Elastic         string
	SyslogTCP       string
	SyslogTLS       string
	SyslogUDP       string
	SyslogTopic     string
	SyslogZone      *time.Location
	SyslogCert      string
	SyslogKey       string
	SyslogClientCA  string
	SyslogAllow     []netip.Prefix
	TLSCert         string
	TLSKey          string
	TLSClientCA     string
	ACMEHosts       []string
	InsecureHosts   []string
	ACMEDirectory   string
	ACMECA          *x509.CertPool
	Insecure        []string
	LoopbackTokens  string
	InputTopic      string
	MetricsTopic    string
	AuditReads      string
	AuditActor      string
	NATS            string
	NATSCreds       string
	NATSCA          string
	NATSCert        string
	NATSKey         string
	NATSClientCA    string
	ClickHouseCA    *x509.CertPool
	S3Endpoint      string // empty: Amazon
	S3Region        string
	S3CA            *x509.CertPool
	CA              *x509.CertPool
	ClickHouse      string
	SQLUser         string
	SQLPassword     string
	GatewayUser     string
	GatewayPassword string
	Profile         string
	Replicas        int
	EventsBytes     int64
	ShardsBytes     int64
	DocsBytes       int64
	TimersBytes     int64
	ReplayWindow    time.Duration
	Full            string
	SpoolDir        string
	SpoolBytes      int64
	PIIKey          string
	TokensFile      string
	Tokens          string
	Token           string
	DrainDelay      time.Duration
	ShutdownTimeout time.Duration
	VerifyEvery     time.Duration // 0: off
	OTLPExport      string        // empty: off
	// OTLPExportHeaders and OTLPExportCA are of posts to it; a nil CA: whom the system trusts.
	OTLPExportHeaders http.Header
	OTLPExportCA      *x509.CertPool
	// TimersAllowCIDRs are addresses and ports that timers may call although they are private.
	TimersAllowCIDRs []callback.Range
	TimersSecrets    callback.Secrets
	LogLevel         string
	LogFormat        string

	// Topics to declare, from the file only.
	Topics []schemas.Topic
	// File that was read; empty for none.
	File string

	values map[string]value
	level  *logLevel // of the logger
}

// value is a key's text and where it came from: --data, ALMANAC_DATA, a file and
// line, or "default".
type value struct{ text, origin string }

// key is one setting, under the same name everywhere: log_level in the file,
// --log-level, ALMANAC_LOG_LEVEL.
type key struct {
	name  string
	def   string
	usage string
	set   func(s *settings, text string) error
	// secret values are masked when shown, and may come from a file named by
	// ALMANAC_<KEY>_FILE.
	secret bool
}

// keys is every setting there is.
var keys = []key{
	{name: "data", def: defaultData(), usage: "`DIR` of the data (default ~/.local/share/almanac)", set: func(s *settings, v string) (err error) {
		s.Data, err = filepath.Abs(v)
		return err
	}},
	{name: "cold_dir", usage: "`DIR` on another disk, which the engine has as volume cold: closed shards of topics with cold_after_days move there (up, restore; it is kept, as the data directory is)", set: func(s *settings, v string) (err error) {
		if v != "" {
			s.ColdDir, err = filepath.Abs(v)
		}
		return err
	}},
	{name: "ports", def: portsDefault, usage: "`PORTS`: default (NATS 4222, ClickHouse 8123 and 9000, HTTP 7070, OTLP 4317 and 4318) or auto (free ones)",
		set: oneOf(func(s *settings) *string { return &s.Ports }, portsDefault, portsAuto)},
	{name: "http", usage: "`ADDRESS` of the HTTP API, its inputs, health and version; off for none (up: 127.0.0.1:7070, else off)", set: plain(func(s *settings) *string { return &s.HTTP })},
	{name: "input_topic", def: "app", usage: "`TOPIC` of events whose client names none, such as Loki's", set: topicName(func(s *settings) *string { return &s.InputTopic })},
	{name: "otlp_http", usage: "`ADDRESS` for logs and metrics of OpenTelemetry over HTTP, with the topic in the path (/t/TOPIC/v1/logs) or the header almanac-topic; off for none (default 127.0.0.1:4318)", set: plain(func(s *settings) *string { return &s.OTLPHTTP })},
	{name: "otlp_grpc", usage: "`ADDRESS` for logs and metrics of OpenTelemetry over gRPC, with the topic in the metadata almanac-topic; off for none (default 127.0.0.1:4317)", set: plain(func(s *settings) *string { return &s.OTLPGRPC })},
	{name: "otlp_once", def: "true", usage: "`BOOL`: true or false, an OTLP request that is sent again is stored once", set: truth(func(s *settings, once bool) { s.OTLPEachTime = !once })},
	{name: "elastic", def: settingOff, usage: "`ADDRESS` for clients of Elasticsearch, such as 127.0.0.1:9200", set: plain(func(s *settings) *string { return &s.Elastic })},
	{name: "syslog_tcp", def: settingOff, usage: "`ADDRESS` for syslog over TCP, such as 127.0.0.1:1514", set: plain(func(s *settings) *string { return &s.SyslogTCP })},
	{name: "syslog_tls", def: settingOff, usage: "`ADDRESS` for syslog over TLS, such as 127.0.0.1:6514", set: plain(func(s *settings) *string { return &s.SyslogTLS })},
	{name: "syslog_udp", def: settingOff, usage: "`ADDRESS` for syslog over UDP, such as 127.0.0.1:1514", set: plain(func(s *settings) *string { return &s.SyslogUDP })},
	{name: "metrics_topic", def: "metrics", usage: "`TOPIC` of kind metric that Prometheus and OpenTelemetry write to, and PromQL reads, where the path names none", set: topicName(func(s *settings) *string { return &s.MetricsTopic })},
	{name: "audit_reads", usage: "`TOPIC` of kind audit in which each read over HTTP is recorded before it is answered", set: unlessEmpty(topicName(func(s *settings) *string { return &s.AuditReads }))},
	{name: "audit_actor", usage: "`HEADER` that claims who reads, such as X-Forwarded-User; it is recorded as claimed_actor", set: unlessEmpty(headerName(func(s *settings) *string { return &s.AuditActor }))},
	{name: "syslog_topic", def: "app", usage: "`TOPIC` of syslog messages", set: topicName(func(s *settings) *string { return &s.SyslogTopic })},
	{name: "syslog_tz", def: "UTC", usage: "`ZONE` of syslog times that name none, such as Europe/Berlin", set: func(s *settings, v string) (err error) {
		if s.SyslogZone, err = time.LoadLocation(v); err != nil {
			return fmt.Errorf("%q is not a time zone, such as Europe/Berlin: %w", v, err)
		}
		return nil
	}},
	{name: "syslog_cert", usage: "`FILE` of the certificate of syslog_tls, in PEM", set: plain(func(s *settings) *string { return &s.SyslogCert })},
	{name: "syslog_key", usage: "`FILE` of its private key, in PEM", set: plain(func(s *settings) *string { return &s.SyslogKey })},
	{name: "syslog_client_ca", usage: "`FILE` of the CA that signed the certificates which clients of syslog_tls must have, in PEM", set: plain(func(s *settings) *string { return &s.SyslogClientCA })},
	{name: "syslog_allow", usage: "`NETWORKS` that syslog is taken from beside this machine, such as 10.0.0.0/8,192.168.1.0/24; beyond loopback it must be set", set: networks(func(s *settings) *[]netip.Prefix { return &s.SyslogAllow })},
	{name: "tls_cert", usage: "`FILE` of the certificate of HTTP, OTLP, Elastic and, beyond loopback, up's NATS, in PEM, with those between it and the CA; a renewed one is taken within 2s", set: plain(func(s *settings) *string { return &s.TLSCert })},
	{name: "tls_key", usage: "`FILE` of its private key, in PEM", set: plain(func(s *settings) *string { return &s.TLSKey })},
	{name: "tls_client_ca", usage: "`FILE` of the CA that signed certificates of clients, in PEM: a token with such a subject needs no secret", set: plain(func(s *settings) *string { return &s.TLSClientCA })},
	{name: "acme_hosts", usage: "`NAMES` with commas between, in place of tls_cert: their certificates are issued by an authority and renewed; it connects to port 443 of each, which must lead to a listener", set: acmeHosts},
	{name: "acme_directory", usage: "`URL` of that authority's directory (default Let's Encrypt)", set: func(s *settings, v string) error {
		s.ACMEDirectory = v
		return acme.Check(nil, v)
	}},
	{name: "acme_ca", usage: "`FILE` of the CA of that URL, in PEM (default: whom the system trusts)", set: authority(func(s *settings) **x509.CertPool { return &s.ACMECA })},
	{name: "insecure", usage: "`WORDS`, beyond loopback: plaintext (without TLS), no-auth (without tokens), or both with a comma between", set: eachOf(func(s *settings) *[]string { return &s.Insecure }, insecurePlaintext, insecureNoAuth)},
	{name: "insecure_hosts", usage: "`NAMES` with commas between, by which clients may ask under insecure: plaintext,no-auth; addresses, names without a dot and those of private zones may always", set: hostNames(func(s *settings) *[]string { return &s.InsecureHosts })},
	{name: "loopback_tokens", def: "false", usage: "`BOOL`: true or false, clients on loopback need a token as all others do, and a password of up's NATS: for a machine that others log in to", set: oneOf(func(s *settings) *string { return &s.LoopbackTokens }, "true", "false")},
	{name: "nats", secret: true, usage: "`URL` of a NATS to use; for up also the address its own listens on, such as 0.0.0.0:4222, which needs tls_cert", set: plain(func(s *settings) *string { return &s.NATS })},
	{name: "nats_creds", usage: "`FILE` of NATS credentials", set: plain(func(s *settings) *string { return &s.NATSCreds })},
	{name: "nats_ca", usage: "`FILE` of the CA of that NATS, for tls:// URLs, in PEM (default: whom the system trusts); it is read again at each connection", set: plain(func(s *settings) *string { return &s.NATSCA })},
	{name: "nats_cert", usage: "`FILE` of a certificate to show to that NATS, in PEM", set: plain(func(s *settings) *string { return &s.NATSCert })},
	{name: "nats_key", usage: "`FILE` of its private key, in PEM", set: plain(func(s *settings) *string { return &s.NATSKey })},
	{name: "nats_client_ca", usage: "`FILE` of the CA that signed the certificates which clients of up's NATS must show beyond loopback, in PEM, beside their passwords", set: plain(func(s *settings) *string { return &s.NATSClientCA })},
	{name: "clickhouse", secret: true, usage: "`DSN` of a ClickHouse to use, with its account: http://…@host:8123/database", set: plain(func(s *settings) *string { return &s.ClickHouse })},
	{name: "clickhouse_reader", secret: true, usage: "`USER:PASSWORD` of its account for SQL that people ask (default: the reader of the up on the data directory, else the account of clickhouse)", set: login(func(s *settings) (*string, *string) { return &s.SQLUser, &s.SQLPassword })},
	{name: "clickhouse_reads", secret: true, usage: "`USER:PASSWORD` of its account for what a gateway reads by statements of its own (default: the account of clickhouse)", set: login(func(s *settings) (*string, *string) { return &s.GatewayUser, &s.GatewayPassword })},
	{name: "clickhouse_ca", usage: "`FILE` of the CA of that ClickHouse, for https:// URLs, in PEM (default: whom the system trusts)", set: authority(func(s *settings) **x509.CertPool { return &s.ClickHouseCA })},
	{name: "s3_endpoint", usage: "`URL` of the object store that has the bucket of a backup, such as https://minio.example:9000 (default: Amazon's)", set: plain(func(s *settings) *string { return &s.S3Endpoint })},
	{name: "s3_region", def: "us-east-1", usage: "`REGION` of that bucket", set: plain(func(s *settings) *string { return &s.S3Region })},
	{name: "s3_ca", usage: "`FILE` of the CA of that object store, in PEM (default: whom the system trusts)", set: authority(func(s *settings) **x509.CertPool { return &s.S3CA })},
	{name: "profile", usage: "`NAME` of a profile; test: shards rotate at 50,000 rows", set: oneOf(func(s *settings) *string { return &s.Profile }, "", profileTest)},
	{name: "replicas", def: "1", usage: "`NUMBER` of copies of each stream, where it is created", set: func(s *settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 5 {
			return fmt.Errorf("%q is not a number from 1 to 5, such as 3", v)
		}
		s.Replicas = n
		return nil
	}},
	{name: "events_bytes", usage: "`SIZE` of stream EVENTS (default: by free space, at most 8GiB, where it is created)", set: size(func(s *settings) *int64 { return &s.EventsBytes })},
	{name: "shards_bytes", usage: "`SIZE` of stream SHARDS (default: by free space, at most 32GiB, where it is created)", set: size(func(s *settings) *int64 { return &s.ShardsBytes })},
	{name: "docs_bytes", usage: "`SIZE` of stream DOCS (default: by free space, at most 8GiB, where it is created)", set: size(func(s *settings) *int64 { return &s.DocsBytes })},
	{name: "timers_bytes", usage: "`SIZE` of stream TIMERS (default: by free space, at most 2GiB, where it is created)", set: size(func(s *settings) *int64 { return &s.TimersBytes })},
	{name: "replay_window", def: "7d", usage: "`TIME` that stored frames stay in SHARDS", set: span(func(s *settings) *time.Duration { return &s.ReplayWindow })},
	{name: "full", def: fullBlock, usage: "`POLICY` of send while NATS takes nothing: block, or spool to the disk",
		set: oneOf(func(s *settings) *string { return &s.Full }, fullBlock, fullSpool)},
	{name: "spool_dir", usage: "`DIR` of the spool (default: spool in the data directory)", set: func(s *settings, v string) (err error) {
		if v == "" {
			v = filepath.Join(s.Data, embedded.SpoolName)
		}
		s.SpoolDir, err = filepath.Abs(v)
		return err
	}},
	{name: "spool_bytes", usage: "`SIZE` the spool may have, 4MiB or more (default 1GiB)", set: func(s *settings, v string) error {
		if n, ok := parseSize(v); v != "" && (!ok || n < spool.MinBytes) {
			return fmt.Errorf("%q is not a size of 4MiB or more, such as 512MiB or 8GiB", v)
		} else if ok {
			s.SpoolBytes = n
		}
		return nil
	}},
	{name: "pii_key", secret: true, usage: "`KEY` of topics' hash rules, 16 bytes or more, the same everywhere", set: func(s *settings, v string) error {
		s.PIIKey = v
		return privacy.CheckKey([]byte(v))
	}},
	{name: "tokens_file", usage: "`FILE` of tokens, which almanac token writes (default: tokens.yaml in the data directory)", set: func(s *settings, v string) (err error) {
		if v == "" {
			v = filepath.Join(s.Data, embedded.TokensName)
		}
		s.TokensFile, err = filepath.Abs(v)
		return err
	}},
	{name: "tokens", secret: true, usage: "`TEXT` of such a file, beside it", set: func(s *settings, v string) error {
		s.Tokens = v // checked here; openTokens reads it together with tokens_file
		_, err := access.Parse([]byte(v))
		return err
	}},
	{name: "token", secret: true, usage: "`SECRET` of a token, for send --to", set: plain(func(s *settings) *string { return &s.Token })},
	{name: "ca_file", usage: "`FILE` of the CA of a gateway, for send --to https://, in PEM (default: whom the system trusts)", set: authority(func(s *settings) **x509.CertPool { return &s.CA })},
	{name: "timers_allow_cidrs", usage: "address `RANGES` and ports that timers may call although they are private, such as 127.0.0.1/32:9000,10.1.0.0/16:8000-8999; without a port 80 and 443", set: func(s *settings, v string) (err error) {
		s.TimersAllowCIDRs, err = callback.ParseRanges(v)
		return err
	}},
	{name: "timers_secrets", secret: true, usage: "`SECRETS` that sign callbacks: NAME@TOPIC,TOPIC=whsec_…,whsec_…;NAME@*=whsec_…, where groups of those topics alone, or of every topic, may name it", set: func(s *settings, v string) (err error) {
		s.TimersSecrets, err = callback.ParseSecrets(v)
		return err
	}},
	{name: "otlp_export", usage: "`URL` of an OTLP endpoint over HTTP that gets the numbers of this process each minute, such as http://127.0.0.1:4318", set: unlessEmpty(httpURL(func(s *settings) *string { return &s.OTLPExport }))},
	{name: "otlp_export_headers", secret: true, usage: "`HEADERS` of those posts, as OpenTelemetry writes them: NAME=VALUE,NAME=VALUE with values percent-encoded, such as authorization=Bearer%20…; over http:// they travel in plain text", set: exportHeaders},
	{name: "otlp_export_ca", usage: "`FILE` of the CA of that endpoint, for https:// URLs, in PEM (default: whom the system trusts)", set: authority(func(s *settings) **x509.CertPool { return &s.OTLPExportCA })},
	{name: "verify_every", def: "1h", usage: "`TIME` between the runs of verify that sinks make by themselves, for /metrics; off for none", set: spanOrOff(func(s *settings) *time.Duration { return &s.VerifyEvery })},
	{name: "drain_delay", def: "0", usage: "`TIME` after the signal to stop in which a process still works and is not ready, so that no more is sent to it, such as 5s", set: spanOrZero(func(s *settings) *time.Duration { return &s.DrainDelay })},
	{name: "shutdown_timeout", def: "15s", usage: "`TIME` a shutdown may take after drain_delay", set: span(func(s *settings) *time.Duration { return &s.ShutdownTimeout })},
	{name: "log_level", def: "info", usage: "`LEVEL`: debug, info, warn or error", set: oneOf(func(s *settings) *string { return &s.LogLevel }, "debug", "info", "warn", "error")},
	{name: "log_format", def: logAuto, usage: "`FORMAT`: text, json or auto (text on a terminal)", set: oneOf(func(s *settings) *string { return &s.LogFormat }, logAuto, logText, logJSON)},
}

const (
	portsDefault = "default"
	portsAuto    = "auto"
	profileTest  = "test"
	fullBlock    = "block"
	fullSpool    = "spool"
	envPrefix    = "ALMANAC_"

	insecurePlaintext = "plaintext"
	insecureNoAuth    = "no-auth"
)

func (k *key) flag() string { return strings.ReplaceAll(k.name, "_", "-") }
func (k *key) env() string  { return envPrefix + strings.ToUpper(k.name) }

func defaultData() string {
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "almanac-data"
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "almanac")
}

// ofSetting is the annotation of a flag that gives a setting.
const ofSetting = "almanac: setting"

// keyFlags adds the flags of the named keys. Their defaults are not pflag's: a
// flag that was not given must not outrank the environment and the file.
//
// They are marked: a verb's own flag may have a setting's name and mean something else, as
// "verify --full" does.
func keyFlags(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		k := findKey(name)
		usage := k.usage
		if k.def != "" && k.name != "data" {
			usage += fmt.Sprintf(" (default %s)", k.def)
		}
		if k.secret {
			usage += fmt.Sprintf("; with a password give it as %s or %s_FILE, which ps does not show", k.env(), k.env())
		}
		flags.String(k.flag(), "", usage)
		flags.Lookup(k.flag()).Annotations = map[string][]string{ofSetting: {k.name}}
	}
}

// exposed returns a warning for each flag with a password: arguments are for every user of the
// machine to read.
func exposed(flags *pflag.FlagSet) (warnings []string) {
	flags.Visit(func(f *pflag.Flag) {
		name := f.Annotations[ofSetting]
		if len(name) == 0 {
			return
		}
		if k := findKey(name[0]); k.secret && k.shown(f.Value.String()) != f.Value.String() {
			warnings = append(warnings, fmt.Sprintf("warning: --%s has a password, which every user of this machine can read with ps; give it as %s, or in a file that %s_FILE names", k.flag(), k.env(), k.env()))
		}
	})
	return warnings
}

func findKey(name string) *key {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

func keyNames() []string {
	names := make([]string, 0, len(keys)+1)
	for i := range keys {
		names = append(names, keys[i].name)
	}
	return append(names, topicsKey)
}

// load settles every key: flag, then environment, then file, then default. Its
// errors are configErrors.
func load(cmd *cobra.Command) (*settings, error) {
	s := &settings{values: map[string]value{}}
	if err := checkEnvironment(os.Environ(), false); err != nil {
		return nil, configError{err}
	}
	for i := range keys {
		s.values[keys[i].name] = value{keys[i].def, "default"}
	}
	if err := s.loadFile(cmd); err != nil {
		return nil, configError{err}
	}
	for i := range keys {
		k := &keys[i]
		v, err := k.fromEnv()
		if err != nil {
			return nil, configError{err}
		}
		if f := cmd.Flags().Lookup(k.flag()); f != nil && f.Changed && f.Annotations[ofSetting] != nil {
			v = value{f.Value.String(), "--" + k.flag()}
		}
		if v.origin == "" {
			v = s.values[k.name]
		}
		s.values[k.name] = v
		if err := k.set(s, v.text); err != nil {
			if strings.HasPrefix(v.origin, "--") {
				return nil, usageError{fmt.Errorf("%s: %w", v.origin, err)}
			}
			return nil, configError{fmt.Errorf("%s: %s: %w", v.origin, k.name, err)}
		}
	}
	return s, nil
}

// shown is the key's text for people: a secret without its password, and so any other URL.
func (k *key) shown(text string) string {
	switch {
	case text == "":
		return text
	case k.name == "nats" || k.name == "clickhouse", !k.secret && strings.Contains(text, "://") && strings.Contains(text, "@"):
		return privacy.MaskedURL(text)
	case !k.secret:
		return text
	}
	return "xxxxx"
}
