package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, complaints io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(complaints)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(complaints, "redquorum:", strings.TrimPrefix(err.Error(), "redquorum: ")) // as the library's begin
	}
	return statusOf(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "redquorum",
		Short: "Locks across independent Redis masters",
		Long: `redquorum takes locks across independent Redis masters, and looks at them.

A lock is taken on N masters that know nothing of each other, and held while a
majority has it: a node may die, hang or come back empty meanwhile.`,
		Example: `  redquorum demo
  redquorum run backup -- /usr/local/bin/backup --full
  redquorum inspect backup
  redquorum ls 'backup-*'
  redquorum doctor
  redquorum demo --nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3`,
		Args:          noArguments,
		Run:           func(cmd *cobra.Command, _ []string) { _ = cmd.Help() },
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("redquorum {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(runCommand(), inspectCommand(), lsCommand(), releaseCommand(), doctorCommand(), demoCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" { // cobra's own shows its help for a shell that it does not know, and succeeds
			cmd.Args, cmd.Run = noArguments, func(cmd *cobra.Command, _ []string) { _ = cmd.Help() }
		}
	}
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

// oneName wants the name of one lock.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%d arguments: want the NAME of one lock; see %s --help", len(args), cmd.CommandPath())
	}
	return nil
}
