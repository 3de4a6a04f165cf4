package embedded

import (
	"fmt"
	"path/filepath"
)

// interactive has the local mode survive what its connections throw. Without a terminal, or without this argument, it
// installs a handler that ends the process for any exception that leaves a connection's thread, such as a client's
// hanging up or a malformed packet (docs/upstream.md). It would open a prompt after its last statement, which never ends.
const interactive = "--interactive"

// logLevel is what engine.log holds: errors, warnings, and the stacks of a crash. Statements that fail are among them.
const logLevel = "warning"

// command is what starts the engine: this program, the arguments after the name it goes by, and what it does first.
//
// A server takes path, ports and host from its configuration. The local mode takes them from its arguments alone, so
// config.xml has them for a server only (config.xml.tmpl).
func (c *ClickHouse) command() (path string, argv []string, mark string, err error) {
	if path, err = self(); err != nil {
		return "", nil, "", fmt.Errorf("finding the program to run the engine with: %w", err)
	}
	host, tcp, http, err := c.endpoint.ports()
	if err != nil {
		return "", nil, "", err
	}
	first := confinement{Access: engineAccess(c.disks(), c.configDir(), c.cfg.Engine, tcp, http)}
	config := "--config-file=" + filepath.Join(c.configDir(), configName)
	if c.cfg.Engine.Kind == EngineBinary {
		first.Program = c.cfg.Engine.Path
		argv = []string{"almanac", EngineCommand, "server", config}
	} else {
		argv = []string{
			"almanac", EngineCommand, c.cfg.Engine.Path,
			"--path=" + c.dataDir(), fmt.Sprintf("--tcp_port=%d", tcp), fmt.Sprintf("--http_port=%d", http), "--listen_host=" + host, config,
			"--log-level=" + logLevel, "--logger.console=1", "--progress=off", "--disable_suggestion",
			// The session must not end: the engine ends with it. 10^8 s are three years; then it is simply restarted.
			"--query=" + startListenHTTP + "; SELECT sleep(100000000)",
		}
	}
	mark, err = first.mark()
	return path, argv, mark, err
}

// The session opens the HTTP port, where the account it runs under cannot log in (config.xml), and then waits. Almanac
// opens the other one, where it can: so no client is ever before the session's last statement.
const (
	startListenHTTP = "SYSTEM START LISTEN HTTP"
	startListenTCP  = "SYSTEM START LISTEN TCP"
)
