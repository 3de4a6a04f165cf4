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

// TestSyslogNG forwards as RFC 5424 over TCP and as JSON lines over HTTP.
func TestSyslogNG(t *testing.T) {
	program := "/usr/sbin/syslog-ng"
	if _, err := os.Stat(program); err != nil {
		t.Skip("syslog-ng is not installed: apt-get install syslog-ng-core syslog-ng-mod-http")
	}
	n := up(t)
	host, port, _ := net.SplitHostPort(n.SyslogTCP)
	config := fmt.Sprintf(`@version: 3.38
options { stats-freq(0); };
source s { unix-dgram("%[1]s/in"); };
destination tcp { syslog("%[2]s" port(%[3]s) transport("tcp")); };
destination lines { http(url("%[4]s/v1/topics/probe/events") method("POST") headers("Content-Type: application/x-ndjson") batch-lines(10) batch-timeout(100)
  body("$(format-json --scope rfc5424 ts=$ISODATE message=$MESSAGE level=$LEVEL service=$PROGRAM)")); };
log { source(s); destination(tcp); destination(lines); };
`, n.dir, host, port, n.HTTP)
	file := filepath.Join(n.dir, "syslog-ng.conf")
	write(t, file, config)
	cmd := exec.Command(program, "-F", "-f", file, "-R", filepath.Join(n.dir, "syslog-ng.persist"), "-c", filepath.Join(n.dir, "syslog-ng.ctl"), "-p", filepath.Join(n.dir, "syslog-ng.pid"), "--no-caps")
	alongside(t, cmd)
	var c net.Conn
	embeddedtest.Eventually(t, maxWait, func() (err error) {
		c, err = net.Dial("unixgram", filepath.Join(n.dir, "in"))
		return err
	})
	defer c.Close()
	for i := range 20 {
		if _, err := fmt.Fprintf(c, "<36>Nov 22 20:00:00 probe[7]: by syslog-ng %d", i); err != nil {
			t.Fatal(err)
		}
	}
	for _, ev := range n.found("sys", "message contains 'by syslog-ng'", 20) {
		ev.has(t, map[string]string{"level": "warn", "service": "probe", "facility": "auth"})
	}
	for _, ev := range n.found("probe", "message contains 'by syslog-ng'", 20) {
		ev.has(t, map[string]string{"level": "warning", "service": "probe"}) // lines keep the word that was sent
		if !strings.HasPrefix(ev.Attributes["FACILITY"], "auth") {
			t.Errorf("the facility is %q", ev.Attributes["FACILITY"])
		}
	}
}
