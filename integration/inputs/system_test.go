package inputs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestLogger sends by logger, over TCP with counts and newlines, and over UDP.
func TestLogger(t *testing.T) {
	logger, err := exec.LookPath("logger")
	if err != nil {
		t.Skip("logger (bsdutils) is not installed")
	}
	n := up(t)
	for message, args := range map[string][]string{
		"logger 5424 tcp": {"--tcp", "--rfc5424", "--octet-count", "--server", n.SyslogTCP}, "logger 3164 tcp": {"--tcp", "--rfc3164", "--server", n.SyslogTCP},
		"logger 5424 udp": {"--udp", "--rfc5424", "--server", n.SyslogUDP}, "logger 3164 udp": {"--udp", "--rfc3164", "--server", n.SyslogUDP},
	} {
		host, port, _ := net.SplitHostPort(args[len(args)-1])
		args = append(args[:len(args)-1], host, "--port", port, "--tag", "probe", "--priority", "auth.err", "--", message)
		runClient(t, n, n.dir, logger, args...)
		for _, ev := range n.found("sys", "message = '"+message+"'", 1) {
			ev.has(t, map[string]string{"level": "error", "service": "probe", "facility": "auth"})
		}
	}
}

// TestRsyslog forwards by TCP, UDP, TLS and the bulk API.
func TestRsyslog(t *testing.T) {
	program := "/usr/sbin/rsyslogd"
	if _, err := os.Stat(program); err != nil {
		t.Skip("rsyslog is not installed: apt-get install rsyslog rsyslog-elasticsearch rsyslog-gnutls")
	}
	n := up(t)
	address := func(a string) string {
		host, port, _ := net.SplitHostPort(strings.TrimPrefix(a, "http://"))
		return fmt.Sprintf(`%s="%s" %s="%s"`, "target", host, "port", port)
	}
	source, err := net.ListenPacket("udp", "127.0.0.1:0") // a free port for rsyslog itself
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(source.LocalAddr().String())
	_ = source.Close()
	config := fmt.Sprintf(`global(workDirectory="%[1]s" defaultNetstreamDriverCAFile="%[1]s/cert.pem")
module(load="imudp") module(load="omelasticsearch")
input(type="imudp" address="127.0.0.1" port="%[2]s")
template(name="doc" type="string" string="{\"message\":\"%%msg:::json%%\",\"fromhost\":\"%%HOSTNAME:::json%%\",\"facility\":\"%%syslogfacility-text%%\",\"priority\":\"%%syslogseverity-text%%\",\"timereported\":\"%%timereported:::date-rfc3339%%\",\"program\":\"%%programname:::json%%\"}")
action(type="omfwd" protocol="tcp" TCP_Framing="octet-counted" template="RSYSLOG_SyslogProtocol23Format" %[3]s)
action(type="omfwd" protocol="udp" template="RSYSLOG_TraditionalForwardFormat" %[4]s)
action(type="omfwd" protocol="tcp" StreamDriver="gtls" StreamDriverMode="1" StreamDriverAuthMode="anon" template="RSYSLOG_SyslogProtocol23Format" %[5]s)
action(type="omelasticsearch" server="127.0.0.1" serverport="%[6]s" template="doc" searchIndex="probe" bulkmode="on")
`, n.dir, port, address(n.SyslogTCP), address(n.SyslogUDP), address(n.SyslogTLS), n.Elastic[strings.LastIndexByte(n.Elastic, ':')+1:])
	file := filepath.Join(n.dir, "rsyslog.conf")
	write(t, file, config)
	cmd := exec.Command(program, "-n", "-f", file, "-i", filepath.Join(n.dir, "rsyslog.pid"))
	alongside(t, cmd)
	embeddedtest.Eventually(t, maxWait, func() error {
		sockets, err := os.ReadFile("/proc/net/udp")
		if err == nil && !strings.Contains(string(sockets), fmt.Sprintf("0100007F:%04X", atoi(port))) {
			err = fmt.Errorf("rsyslog does not listen yet")
		}
		return err
	})
	c, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("<36>Nov 22 20:00:00 vm probe[7]: by rsyslog")); err != nil {
		t.Fatal(err)
	}
	for _, ev := range n.found("sys", "message contains 'by rsyslog'", 3) {
		ev.has(t, map[string]string{"level": "warn", "service": "probe", "host": "vm", "facility": "auth"})
	}
	for _, ev := range n.found("probe", "message contains 'by rsyslog'", 1) {
		ev.has(t, map[string]string{"level": "warn", "service": "probe", "fromhost": "vm", "facility": "auth"})
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// TestPythonElasticsearch sends by the client of Debian.
func TestPythonElasticsearch(t *testing.T) {
	python := "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import elasticsearch").Run(); err != nil {
		t.Skip("python3-elasticsearch is not installed")
	}
	n := up(t)
	runClient(t, n, n.dir, python, "-c", `
import os
from elasticsearch import Elasticsearch, helpers
es = Elasticsearch([os.environ["ELASTIC"]])
assert es.info()["version"]["number"]
ok, bad = helpers.bulk(es, ({"_index": "probe", "_source": {"message": "from python", "n": i, "user": {"id": "u%d" % i}}} for i in range(20)))
assert ok == 20 and not bad, (ok, bad)
`)
	for _, ev := range n.found("probe", "message = 'from python'", 20) {
		ev.has(t, map[string]string{"user_id": "u" + ev.Attributes["n"]})
	}
}
