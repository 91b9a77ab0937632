// The contract of the command line: exit codes, streams, messages.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

TEST_CASE("Help and version go to standard output and succeed") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"siltfs", "--help"},
                                             {"siltfs", "-h"},
                                             {"siltfs", "mkfs", "--help"},
                                             {"siltfs", "mount", "--help"},
                                             {"siltfs", "umount", "--help"},
                                             {"siltfs", "stat", "--help"},
                                             {"siltfs", "fsck", "--help"},
                                             {"fsck.siltfs", "--help"},
                                             {"siltfs", "index", "--help"},
                                             {"siltfs", "index", "plan", "--help"},
                                             {"siltfs", "index", "stat", "--help"},
                                             {"mkfs.siltfs", "--help"},
                                             {"/sbin/mount.siltfs", "--help"},
                                             {"umount.siltfs", "--help"},
                                             {"siltfs", "--version"},
                                             {"mkfs.siltfs", "--version"}}) {
    const Outcome outcome = Run(arguments);
    INFO(arguments.back() << " " << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_FALSE(outcome.out.empty());
    CHECK(outcome.err.empty());
  }
  CHECK(Run({"siltfs", "--version"}).out.starts_with("siltfs 0."));
}

TEST_CASE("Help lists the commands") {
  const std::string help = Run({"siltfs", "--help"}).out;
  for (const char* command :
       {"mkfs", "mount", "umount", "stat", "settle", "gc", "scrub", "fsck", "list", "check-health",
        "metrics", "explain", "report", "du", "find-duplicates", "tune", "quota", "index"})
    CHECK(Has(help, command));
}

TEST_CASE("A usage error exits 2 with one sentence and nothing on standard output") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"siltfs"},
                                             {"siltfs", "report", "/store"},
                                             {"siltfs", "frobnicate"},
                                             {"siltfs", "--frobnicate"},
                                             {"siltfs", "mkfs"},
                                             {"siltfs", "mkfs", "a", "b"},
                                             {"siltfs", "mkfs", "--frobnicate", "a"},
                                             {"siltfs", "mount", "store"},
                                             {"siltfs", "mount", "store", "mountpoint", "more"},
                                             {"siltfs", "mount", "store", "mountpoint", "-o"},
                                             {"siltfs", "mount", "/", "/", "-o", "frobnicate"},
                                             {"siltfs", "mount", "/", "/", "-o", "ro,commit=never"},
                                             {"siltfs", "umount"},
                                             {"siltfs", "umount", "a", "b"},
                                             {"siltfs", "stat"},
                                             {"siltfs", "stat", "--xml", "a"},
                                             {"mkfs.siltfs"},
                                             {"umount.siltfs"}}) {
    const Outcome outcome = Run(arguments);
    INFO(arguments.back() << ": " << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
  }
}

TEST_CASE("mount.siltfs uses the codes of mount(8)") {
  CHECK(Run({"mount.siltfs"}).code == 1);
  CHECK(Run({"mount.siltfs", "/", "/", "-o", "frobnicate"}).code == 1);
  const TemporaryDirectory directory;
  CHECK(Run({"mount.siltfs", directory / "store", directory / "missing"}).code == 32);
}

TEST_CASE("mount.siltfs accepts the arguments of mount(8)") {
  const TemporaryDirectory directory;
  REQUIRE(std::system(
              ("mkdir " + directory.path() + "/mnt " + directory.path() + "/store").c_str()) == 0);
  const Outcome outcome =
      Run({"mount.siltfs", directory / "store", directory / "mnt", "-sfnv", "-o",
           "rw,nosuid,nodev,noauto,user=joe,_netdev,x-systemd.requires=a.mount"});
  INFO(outcome.err);
  CHECK(outcome.code == 0);  // -f: checked, not mounted
}

TEST_CASE("A mount warns of too much or too little memory for the index") {
  const TemporaryDirectory directory;
  REQUIRE(std::system(
              ("mkdir " + directory.path() + "/mnt " + directory.path() + "/store").c_str()) == 0);
  const auto said = [&](const std::string& options) {
    const Outcome outcome =
        Run({"mount.siltfs", directory / "store", directory / "mnt", "-f", "-o", options});
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK(said("index_memory=16383P")
            .starts_with("siltfs: warning: mount option \"index_memory\": 16.0 EiB is more than"));
  CHECK(Has(said("index_memory=8KiB"), "8.0 KiB is less than the 3.0 MiB"));
  CHECK(said("index_memory=0").empty());
  CHECK(said("index_memory=4MiB").empty());
}

TEST_CASE("An unusable mountpoint is reported before the store is opened") {
  const TemporaryDirectory directory;
  REQUIRE(std::system(("mkdir " + directory.path() + "/dir && touch " + directory.path() + "/file")
                          .c_str()) == 0);
  const auto mount = [&](const std::string& mountpoint) {
    return Run({"siltfs", "mount", "-f", directory / "no-store", mountpoint});
  };
  const Outcome missing = mount(directory / "missing");
  CHECK(missing.code == 1);
  CHECK(missing.err == "siltfs: " + (directory / "missing") +
                           ": the mountpoint does not exist; make the directory first\n");
  const Outcome file = mount(directory / "file");
  CHECK(file.code == 1);
  CHECK(Has(file.err, "is not a directory"));
  const Outcome own = Run({"siltfs", "mount", "-f", directory / "dir", directory.path()});
  CHECK(own.code == 1);
  CHECK(Has(own.err, "would hide its own store"));
  const Outcome inside = Run({"siltfs", "mount", "-f", directory.path(), directory / "dir"});
  CHECK(inside.code == 1);
  CHECK(Has(inside.err, "lies in the store itself"));
}

TEST_CASE("A directory without a store exits 10, for stat and for mount") {
  const TemporaryDirectory directory;
  REQUIRE(std::system(
              ("mkdir " + directory.path() + "/dir " + directory.path() + "/mnt").c_str()) == 0);
  for (const std::string& place : {directory / "dir", directory / "missing"}) {
    const Outcome stat = Run({"siltfs", "stat", "--json", place});
    INFO(stat.err);
    CHECK(stat.code == 10);
    CHECK(Has(stat.out, "\"error\""));
    CHECK(Has(stat.err, place));
    const Outcome mount = Run({"siltfs", "mount", "-f", place, directory / "mnt"});
    INFO(mount.err);
    CHECK(mount.code == 10);
    CHECK(Has(mount.err, place));
  }
}

TEST_CASE("Unmounting a path that is not a siltfs mount fails and changes nothing") {
  const TemporaryDirectory directory;
  const Outcome outcome = Run({"siltfs", "umount", directory.path()});
  CHECK(outcome.code == 1);
  CHECK(outcome.err ==
        "siltfs: " + directory.path() +
            ": no siltfs file system is mounted there; siltfs list shows the mounted stores\n");
  CHECK(Run({"siltfs", "umount", "/proc"}).code == 1);
  CHECK(Run({"siltfs", "umount", directory / "missing"}).code == 1);
}

}  // namespace
}  // namespace siltfs::testing
