package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	built "github.com/almanac-events/almanac/internal/gateway/console"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
)

// maxWait is how long a script may take on a machine that is busy.
const maxWait = 25 * time.Minute

// web is the folder of the page's sources, whose packages have playwright-core.
const web = "../../internal/gateway/console/web"

// runs are the programs that scripts run beside Almanac.
var runs = map[string][]string{"drive-send.mjs": {"sh", "bash", "curl", "logger"}}

func TestPage(t *testing.T) {
	t.Parallel()
	told := needed(t)
	up(t, told)
	scripts, err := filepath.Glob("drive-*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range append([]string{"drive.mjs"}, scripts...) { // it begins with an empty Almanac
		t.Run(strings.TrimSuffix(script, ".mjs"), func(t *testing.T) {
			for _, name := range runs[script] {
				if _, err := exec.LookPath(name); err != nil {
					t.Skipf("no %s here", name)
				}
			}
			drive(t, script, told)
		})
	}
}

// TestAway has an Almanac of its own, which the script stops and starts.
func TestAway(t *testing.T) {
	t.Parallel()
	told := needed(t)
	dir := t.TempDir()
	told["http"], told["cwd"] = embeddedtest.FreeAddress(t), dir
	told["base"], told["data"] = "http://"+told["http"], filepath.Join(dir, "data")
	told["nats"] = embeddedtest.Start(t, embeddedtest.WithoutClickHouse()).NATSURL // which the script cuts off
	drive(t, "away.mjs", told)
}

// TestShots writes pictures of every page into the directory that ALMANAC_CONSOLE_SHOTS names. They are for people:
// the test fails where a page is wider than its window.
func TestShots(t *testing.T) {
	dir := os.Getenv("ALMANAC_CONSOLE_SHOTS")
	if dir == "" {
		t.Skip("no pictures are asked for: make console-shots")
	}
	told := needed(t)
	up(t, told)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	told["shots"] = dir
	drive(t, "shots.mjs", told)
}

// needed skips a test where there is no browser or no page. It builds Almanac, and returns what scripts are told of it
// and of the browser.
func needed(t *testing.T) map[string]string {
	t.Helper()
	for _, name := range []string{"chromium", "node"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here: apt-get install %s", name, map[string]string{"chromium": "chromium", "node": "nodejs"}[name])
		}
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(web, "node_modules", name)); err != nil || !built.Built() {
			t.Skip("the page or its packages are not built here: make console")
		}
	}
	chromium, _ := exec.LookPath("chromium")
	from, err := filepath.Abs(web)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "almanac")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/almanac").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return map[string]string{"chromium": chromium, "packages": from, "shared": inputtest.DataDir(t), "program": program}
}

// drive runs a script. Each of its scenarios is a subtest.
func drive(t *testing.T, script string, told map[string]string) {
	t.Helper()
	arg, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script, string(arg))
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and the browser
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sessions, _ := strconv.Atoi(os.Getenv("ALMANAC_CONSOLE_SESSIONS"))
	tail, _ := strconv.Atoi(told["tailSeconds"])
	overdue := time.AfterFunc(maxWait*time.Duration(max(sessions, 1))+time.Duration(tail)*time.Second, func() { _ = cmd.Cancel() })
	defer overdue.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	ended := false
	for lines.Scan() {
		var one struct{ Scenario, Failed string }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Errorf("%s: %s", script, lines.Text())
			continue
		}
		ended = ended || one.Scenario == "what was asked"
		t.Run(one.Scenario, func(t *testing.T) {
			if one.Failed != "" {
				t.Error(one.Failed)
			}
		})
	}
	if err := cmd.Wait(); err != nil || !ended {
		t.Errorf("%s ended before its last scenario: %v", script, err)
	}
}

// environment is that of Almanac: with the engine's library where it is below node_modules.
func environment() []string {
	if root, err := filepath.Abs("../.."); err == nil && os.Getenv("ALMANAC_LIBCHDB") == "" {
		if libraries, _ := filepath.Glob(filepath.Join(root, "node_modules/@chdb/lib-*/libchdb.so")); len(libraries) > 0 {
			return append(os.Environ(), "ALMANAC_LIBCHDB="+libraries[0])
		}
	}
	return os.Environ()
}

// up starts Almanac, and adds to what scripts are told where its page is, its local token and its data.
func up(t *testing.T, told map[string]string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	cmd := exec.Command(told["program"], append([]string{"up", "--ports", "auto", "--syslog-udp", "127.0.0.1:0", "--log-format", "json", "--data", data}, flags...)...)
	cmd.Dir, cmd.Env = dir, append(environment(), "ALMANAC_DATA="+data)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	var said strings.Builder // not read before ended
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			var line struct{ Message, Page string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "ready" && line.Page != "" {
				ready <- line.Page
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(maxWait):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	var address string
	select {
	case address = <-ready: // what up prints is where the page is
	case <-ended:
		t.Fatal("almanac up ended: " + said.String())
	case <-time.After(maxWait):
		t.Fatal(errors.New("almanac up is not ready"))
	}
	bury(t, data)
	token, err := keep.ReadLocal(filepath.Join(data, embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	told["base"], told["token"], told["data"] = strings.TrimSuffix(address, built.Path), token, data
}

// bury publishes what no router can route: two messages that become dead letters.
func bury(t *testing.T, data string) {
	t.Helper()
	a, err := embedded.ReadAddresses(data)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(a.NATS, nats.Timeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, text := range []string{"garbage <b>one</b>", "garbage \u202etwo"} {
		if err := nc.Publish("events.app.2026-11.0", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(maxWait); err != nil {
		t.Fatal(err)
	}
}
