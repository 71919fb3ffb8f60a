package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The README shows this very program, so what compiles here compiles for its reader.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(source), "package main")
	if !bytes.Contains(readme, []byte("```go\npackage main"+program+"```")) {
		t.Error("README.md does not contain main.go to the letter")
	}
}

func TestFirstProgramDoesWhatTheReadmeSays(t *testing.T) {
	out, err := exec.Command("go", "run", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := string(out), "nobody else is here, until ctx ends\ndone: <nil>\n"; got != want {
		t.Errorf("it printed %q, the README says %q", got, want)
	}
}
