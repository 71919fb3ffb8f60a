package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/demo"
)

// Exit statuses, as the help has them.
const (
	exact    = 0
	notExact = 1
	failed   = 2
)

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, complaints io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(complaints)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exact
	}
	fmt.Fprintln(complaints, "redquorum:", strings.TrimPrefix(err.Error(), "redquorum: ")) // as the library's begin
	if errors.Is(err, demo.ErrNotExact) {
		return notExact
	}
	return failed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "redquorum",
		Short: "Locks across independent Redis masters",
		Long: `redquorum shows what locks across independent Redis masters do.

The library takes a lock on N masters that know nothing of each other, and holds
it while a majority has it: a node may die, hang or come back empty meanwhile.`,
		Example: `  redquorum demo
  redquorum demo --nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3`,
		Args:              noArguments,
		Run:               func(cmd *cobra.Command, _ []string) { _ = cmd.Help() },
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("redquorum {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(demoCommand())
	return root
}

// noArguments refuses arguments without repeating them: an address that was meant for --nodes may hold a password.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.Contains(args[0], "://") {
		return fmt.Errorf("%s takes no arguments; addresses belong behind --nodes", cmd.CommandPath())
	}
	return fmt.Errorf("%s knows no %q; see %[1]s --help", cmd.CommandPath(), args[0])
}

// flagError withholds an address for the same reason.
func flagError(cmd *cobra.Command, err error) error {
	if strings.Contains(err.Error(), "://") {
		return fmt.Errorf("an unknown flag with an address (withheld, it may hold a password); see %s --help", cmd.CommandPath())
	}
	return err
}

// version is the module's version, or that of the checkout the command was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
