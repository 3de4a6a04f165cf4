package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

const (
	configName = "almanac.yaml"
	topicsKey  = "topics"
)

// configPaths are where a file is looked for; the first that exists counts.
func configPaths() []string {
	paths := []string{configName}
	if dir, err := os.UserConfigDir(); err == nil { // XDG_CONFIG_HOME, or ~/.config
		paths = append(paths, filepath.Join(dir, "almanac", configName))
	}
	return append(paths, filepath.Join("/etc", "almanac", configName))
}

// loadFile reads the file that was named, or the first that is found, if any.
func (s *settings) loadFile(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		return s.readFile(f.Value.String())
	}
	if name := os.Getenv(envPrefix + "CONFIG"); name != "" {
		return s.readFile(name)
	}
	for _, path := range configPaths() {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return s.readFile(path)
		}
	}
	return nil
}

func (s *settings) readFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the settings file: %w", err)
	}
	s.File = path
	root, err := parseYAML(path, data)
	if err != nil || root == nil {
		return err
	}
	return eachKey(path, root, "setting", keyNames(), func(name string, v *yaml.Node) error {
		if name == topicsKey {
			s.Topics, err = readTopics(path, v)
			return err
		}
		if v.Kind != yaml.ScalarNode {
			return at(path, v, "%s must be one value", name)
		}
		if v.Tag == "!!null" {
			return nil // "key:" alone: not set
		}
		s.values[name] = value{v.Value, fmt.Sprintf("%s:%d", path, v.Line)}
		return nil
	})
}

// parseYAML is the file's mapping; nil when it is empty.
func parseYAML(path string, data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// eachKey walks a mapping and refuses keys that are not known, or come twice.
func eachKey(path string, node *yaml.Node, what string, known []string, f func(name string, v *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return at(path, node, "a %s must be written as key: value", what)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		ok := false
		for _, name := range known {
			ok = ok || name == k.Value
		}
		if !ok {
			return at(path, k, "unknown %s %q%s", what, k.Value, suggestion(k.Value, known, ""))
		}
		if seen[k.Value] != 0 {
			return at(path, k, "%s %q stands on line %d already", what, k.Value, seen[k.Value])
		}
		seen[k.Value] = k.Line
		for v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if err := f(k.Value, v); err != nil {
			return err
		}
	}
	return nil
}

func at(path string, node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", path, node.Line, fmt.Sprintf(format, args...))
}
