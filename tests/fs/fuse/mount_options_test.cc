#include "fs/fuse/mount_options.h"

#include "tests/support/catch.h"

namespace siltfs {
namespace {

Result<MountOptions> Parse(std::vector<std::string> lists) { return ParseMountOptions(lists); }

MountOptions Parsed(std::vector<std::string> lists) {
  auto options = Parse(std::move(lists));
  REQUIRE_OK(options);
  return *options;
}

using Names = std::vector<std::string>;

TEST_CASE("Without options nothing is restricted and nothing is passed on") {
  const MountOptions options = Parsed({});
  CHECK_FALSE(options.read_only);
  CHECK_FALSE(options.allow_other);
  CHECK_FALSE(options.no_xattrs);
  CHECK_FALSE(options.no_background_gc);
  CHECK_FALSE(options.index_memory);
  CHECK_FALSE(options.index_sync);
  CHECK(options.index_merge_rate == 0);
  CHECK_FALSE(options.commit_interval);
  CHECK_FALSE(options.log_file);
  CHECK(options.passed_on.empty());
  CHECK_FALSE(options.owners.any());
}

TEST_CASE("Owners and permission bits can be replaced") {
  CHECK(Parsed({"uid=1000,gid=0,umask=027"}).owners ==
        OwnerMapping{.uid = 1000, .gid = 0, .umask = 027});
  CHECK(Parsed({"umask=0"}).owners == OwnerMapping{.uid = {}, .gid = {}, .umask = 0});
  CHECK(Parsed({"uid=1,uid=4294967294,umask=0777"}).owners ==
        OwnerMapping{.uid = 4294967294, .gid = {}, .umask = 0777});
  CHECK(Parse({"uid=root"}).status().ToString() ==
        "mount option \"uid=root\": not a whole number from 0 to 4294967294");
  CHECK(Parse({"umask=098"}).status().ToString() ==
        "mount option \"umask=098\": not an octal number from 0 to 777, as umask(2) takes it");
  CHECK(Parse({"gid"}).status().ToString() == "mount option \"gid\" needs a value");
}

TEST_CASE("siltfs's own options are parsed to types") {
  const MountOptions options =
      Parsed({"ro,allow_other", "noxattr,nogc,index_memory=52M,commit=30,log=/var/log/a=b"});
  CHECK(options.read_only);
  CHECK(options.allow_other);
  CHECK(options.no_xattrs);
  CHECK(options.no_background_gc);
  CHECK(options.index_memory == 52U << 20);
  CHECK(options.commit_interval == std::chrono::seconds(30));
  CHECK(options.log_file == "/var/log/a=b");
}

TEST_CASE("The transport of requests can be chosen") {
  CHECK(Parsed({}).io_uring == IoUringUse::kAuto);
  CHECK(Parsed({"io_uring=on"}).io_uring == IoUringUse::kOn);
  CHECK(Parsed({"io_uring=off"}).io_uring == IoUringUse::kOff);
  CHECK(Parsed({"io_uring=on,io_uring=auto"}).io_uring == IoUringUse::kAuto);
  for (const char* wrong : {"io_uring", "io_uring=", "io_uring=yes", "io_uring=ON"}) {
    REQUIRE_CODE(Parse({wrong}), kInvalidArgument);
  }
}

TEST_CASE("An index may have no memory") { CHECK(Parsed({"index_memory=0"}).index_memory == 0); }

TEST_CASE("The index can be synchronous, and its rewriting can be limited") {
  const MountOptions options = Parsed({"index_sync,index_merge_rate=20M"});
  CHECK(options.index_sync);
  CHECK(options.index_merge_rate == 20U << 20);
  CHECK(Parsed({"index_merge_rate=1k"}).index_merge_rate == 1024);
  CHECK(Parsed({"index_merge_rate=3GiB"}).index_merge_rate == uint64_t{3} << 30);
  CHECK(Parsed({"index_merge_rate=1G,index_merge_rate=0"}).index_merge_rate == 0);
  CHECK(Parse({"index_merge_rate=fast"})
            .status()
            .ToString()
            .starts_with("mount option \"index_merge_rate\": \"fast\" is not a size"));
}

TEST_CASE("The last of two options that contradict each other counts") {
  CHECK_FALSE(Parsed({"ro,rw"}).read_only);
  CHECK(Parsed({"rw", "ro"}).read_only);
  CHECK(Parsed({"nosuid,suid,nodev"}).passed_on == Names{"suid", "nodev"});
  CHECK(Parsed({"suid,dev,nosuid"}).passed_on == Names{"dev", "nosuid"});
  CHECK(Parsed({"commit=5,commit=6"}).commit_interval == std::chrono::seconds(6));
}

TEST_CASE("Options of the kernel are passed on") {
  CHECK(Parsed({"nosuid,nodev,noexec,noatime,sync,dirsync"}).passed_on ==
        Names{"nosuid", "nodev", "noexec", "noatime", "sync", "dirsync"});
  CHECK(Parsed({"dev,suid,exec,atime,async"}).passed_on == Names{"dev", "suid"});
  CHECK(Parsed({"defaults,relatime,strictatime,nodiratime"}).passed_on.empty());
  CHECK(Parsed({"context=\"system_u:object_r:t:s0:c1,c2\",ro"}).passed_on ==
        Names{"context=\"system_u:object_r:t:s0:c1,c2\""});
  CHECK(Parsed({"max_read=131072"}).max_read == 131072);
  CHECK(Parsed({"allow_root"}).allow_root);
}

TEST_CASE("Options for mount(8) are dropped") {
  const MountOptions options =
      Parsed({"defaults,noauto,user,user=joe,nofail,_netdev,x-systemd.automount,x-gvfs-hide,"
              "comment=hello,relatime"});
  CHECK(options.passed_on.empty());
}

TEST_CASE("Empty parts of a list mean nothing") { CHECK(Parsed({"", ",ro,,"}).read_only); }

TEST_CASE("An unknown option is named") {
  const auto options = Parse({"ro,frobnicate=3"});
  REQUIRE_CODE(options, kInvalidArgument);
  CHECK(options.status().ToString() == "unknown mount option \"frobnicate=3\"");
}

TEST_CASE("An invalid value is refused") {
  for (const char* text : {"commit=0",
                           "commit=3601",
                           "commit=-1",
                           "commit=5s",
                           "commit=",
                           "commit",
                           "index_memory",
                           "index_memory=lots",
                           "index_sync=1",
                           "index_sync=",
                           "index_merge_rate",
                           "index_merge_rate=",
                           "index_merge_rate=-1",
                           "log=",
                           "log",
                           "max_read=100",
                           "ro=1",
                           "noxattr=yes",
                           "uid",
                           "uid=",
                           "uid=-1",
                           "uid=4294967295",
                           "uid=1000:1000",
                           "gid=wheel",
                           "umask=",
                           "umask=1000",
                           "umask=0x1f",
                           "umask=-22",
                           "umask=u=rwx",
                           "context",
                           "nosuid=1"}) {
    INFO(text);
    REQUIRE_CODE(Parse({text}), kInvalidArgument);
  }
}

TEST_CASE("Harmful options are refused with the reason") {
  CHECK(Parse({"auto_unmount"}).status().cause().find("before everything is written") !=
        std::string_view::npos);
  CHECK(Parse({"fsname=x"}).status().cause().find("sets it itself") != std::string_view::npos);
  CHECK(Parse({"rw,user_id=0,remount"}).status().cause().find("unmount the store") !=
        std::string_view::npos);
  REQUIRE_CODE(Parse({"allow_other,allow_root"}), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs
