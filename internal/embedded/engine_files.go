package embedded

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config.xml.tmpl users.xml.tmpl
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "*.tmpl"))

// The names of the two configuration files.
const (
	configName = "config.xml"
	usersName  = "users.xml"
)

// engineFiles is what the two configuration files need to know. Strings are escaped for XML by escaped.
type engineFiles struct {
	Server            bool
	Host              string
	TCPPort           int
	HTTPPort          int
	DataPath          string
	ColdPath          string
	StoragePolicy     string
	VolumeCold        string
	UsersFile         string
	MaxMemoryBytes    int64
	CacheBytes        int64
	BackgroundThreads int
	KeeperHash        string
	Accounts          []accountHeader
	Users, Profiles   string // as access writes them
}

// write puts config.xml and users.xml into dir.
func (f engineFiles) write(dir string) error {
	f.DataPath, f.ColdPath, f.UsersFile = escaped(f.DataPath), escaped(f.ColdPath), escaped(f.UsersFile)
	for name, path := range map[string]string{
		"config.xml.tmpl": filepath.Join(dir, configName),
		"users.xml.tmpl":  filepath.Join(dir, usersName),
	} {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, name, f); err != nil {
			return fmt.Errorf("engine configuration %s: %w", name, err)
		}
		if err := writeFile(path, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer does not fail
	return b.String()
}

// hashed is the form of a password the users file takes. They are random, 130 bits long: a plain hash is enough.
func hashed(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// makeDirs creates the directories of an engine, readable by the owner only.
func makeDirs(dirs ...string) error {
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("creating the engine's directory: %w", err)
		}
	}
	return nil
}
