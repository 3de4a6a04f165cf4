package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// named is a path between backticks, or one that a link leads to: below a folder of this tree, with a file's ending or none.
var named = regexp.MustCompile("`([a-z_.][\\w.-]*(?:/[\\w.*-]+)+)`|\\]\\(([^):#]+)[^)]*\\)")

// missing returns the paths that a document names and the tree does not have. A path counts when its first folder is one
// of this tree: `text/plain` is not a path.
func missing(document, text string, exists func(string) bool) (bad []string) {
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		path, from := found[1], "."
		if path == "" {
			path, from = found[2], filepath.Dir(document)
			if strings.Contains(found[0], "://") {
				continue
			}
		} else if first, _, _ := strings.Cut(path, "/"); !exists(first) {
			continue
		}
		if !exists(filepath.Join(from, path)) {
			bad = append(bad, path)
		}
	}
	return bad
}

// checkPaths reports whether a document names what is not there.
func checkPaths(document string) (bad bool) {
	exists := func(path string) bool {
		found, err := filepath.Glob(path)
		if err == nil && len(found) > 0 {
			return true
		}
		// What builds write is named too: bin/almanac.
		_, err = os.Stat(filepath.Dir(path))
		return err == nil && strings.HasPrefix(path, "bin/")
	}
	for _, path := range missing(document, whole(document), exists) {
		fmt.Printf("%s: %q is not in this tree: name what is\n", document, path)
		bad = true
	}
	return bad
}
