package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

const (
	modulePath    = "github.com/almanac-events/almanac"
	moduleVersion = "v0.0.1"
	// installWait is how long the module's program may take to be ready, or to end.
	installWait = 3 * time.Minute
)

// moduleProxy writes the module as it is at HEAD where Go finds it as a version: a proxy that is a directory.
func moduleProxy(t *testing.T, root string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, modulePath, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	files := []string{"."}
	for _, name := range strings.Fields(git("ls-files", "*go.mod")) {
		if of := filepath.Dir(name); of != "." {
			files = append(files, ":(exclude)"+of) // modules of their own, which a version of this one does not have
		}
	}
	git(append([]string{"archive", "--format=zip", "--prefix=" + modulePath + "@" + moduleVersion + "/", "-o", filepath.Join(dir, moduleVersion+".zip"), "HEAD", "--"}, files...)...)
	for name, text := range map[string]string{
		"list": moduleVersion + "\n", moduleVersion + ".mod": git("show", "HEAD:go.mod"), moduleVersion + ".info": `{"Version":"` + moduleVersion + `","Time":"2026-11-27T00:00:00Z"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// TestGoInstall installs the program as README says it, of a version that Go gets from a proxy. It says its version; without an engine up says how to
// get one, and with one it becomes ready. It compiles everything once, so it runs where ALMANAC_GO_INSTALL is set, as make go-install does.
func TestGoInstall(t *testing.T) {
	if os.Getenv("ALMANAC_GO_INSTALL") == "" {
		t.Skip("takes minutes; ALMANAC_GO_INSTALL=1 runs it")
	}
	engine := embeddedtest.FindEngine(t)
	if engine.Kind != embedded.EngineLibrary {
		t.Skip("needs libchdb: a clickhouse program on PATH would be found without being named")
	}
	had, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	to, cache := t.TempDir(), t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", modulePath+"/cmd/almanac@"+moduleVersion)
	install.Dir = t.TempDir() // outside of any module
	install.Env = append(os.Environ(), "GOBIN="+to, "GOMODCACHE="+cache, "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOPRIVATE=", "GONOPROXY=none", "CGO_ENABLED=0",
		"GOPROXY=file://"+moduleProxy(t, "../..")+",file://"+filepath.Join(strings.TrimSpace(string(had)), "cache", "download"))
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, said)
	}
	program := filepath.Join(to, "almanac")
	home := t.TempDir()
	command := func(env string, args ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), installWait)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=/nowhere", env}
		return cmd
	}
	text, err := command("A=b", "version", "-o", "json").Output()
	var version struct{ Version, Engine string }
	if err := errors.Join(err, json.Unmarshal(text, &version)); err != nil || version.Version != moduleVersion || version.Engine != "" {
		t.Errorf("version: %v, %s", err, text)
	}
	up := []string{"up", "--ports", "auto", "--data", filepath.Join(home, "data"), "--log-format", "json"}
	if said, err := command("A=b", up...).CombinedOutput(); err == nil || !strings.Contains(string(said), "npm install --prefix . --no-save @chdb/") {
		t.Errorf("up without an engine: %v\n%s", err, said)
	}
	var said lines
	running := command(embedded.LibraryEnv+"="+engine.Path, up...)
	running.Stderr = &said
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- running.Wait() }()
	embeddedtest.Eventually(t, installWait, func() error {
		if strings.Contains(said.String(), `"message":"ready"`) {
			return nil
		}
		return fmt.Errorf("up is not ready:\n%s", said.String())
	})
	if err := running.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("up ended with %v:\n%s", err, said.String())
	}
}

// lines keeps what a process says.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
