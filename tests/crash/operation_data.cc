#include "tests/crash/operation_data.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "store/base/random.h"
#include "tests/support/acl_text.h"

namespace siltfs::testing {
namespace {

// Fills `data` with lines that compress better in larger blocks, so that recompression makes
// segments smaller.
void FillWithLines(uint64_t seed, Bytes& data) {
  constexpr size_t kLine = 64;
  constexpr size_t kLines = 100;
  Bytes lines(kLine * kLines);
  Random(1).Fill(lines);
  Random random(seed);
  for (size_t at = 0; at < data.size(); at += kLine) {
    const size_t size = std::min(kLine, data.size() - at);
    const auto line = lines.begin() + static_cast<ptrdiff_t>(random.Below(kLines) * kLine);
    std::copy(line, line + static_cast<ptrdiff_t>(size), data.begin() + static_cast<ptrdiff_t>(at));
  }
}

constexpr uint64_t kPartSize = 4096;
constexpr uint64_t kFirstPartSeed = uint64_t{1} << 56;
constexpr uint64_t kPartSeeds = kFirstPartSeed + kContents * kParts;

constexpr uint64_t kFirstVersionSeed = uint64_t{1} << 57;
constexpr uint64_t kVersionSeeds = kFirstVersionSeed + kTexts * kTextVersions;
// A byte of each chunk of usual length is different in each version.
constexpr size_t kVersionStep = 700;

// Few letters, so that the text compresses by about a third and blocks are worth a rewrite.
void FillWithVersion(uint64_t version, Bytes& data) {
  Random(1000 + version / kTextVersions).Fill(data);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>('a' + byte % 32);
  for (size_t at = kVersionStep / 2; at < data.size(); at += kVersionStep)
    data[at] = static_cast<uint8_t>('0' + version % kTextVersions);
}

void FillWithPart(uint64_t part, Bytes& data) {
  Bytes content(part % kParts * kPartSize + data.size());
  Random(part / kParts).Fill(content);
  std::copy(content.end() - static_cast<ptrdiff_t>(data.size()), content.end(), data.begin());
}

}  // namespace

uint64_t PartSeed(uint64_t content, uint64_t part) {
  return kFirstPartSeed + content * kParts + part;
}

uint64_t VersionSeed(uint64_t text, uint64_t version) {
  return kFirstVersionSeed + text * kTextVersions + version;
}

Bytes DataOf(const Operation& operation) {
  Bytes data(operation.size);
  if (operation.data_seed >= kFirstPartSeed && operation.data_seed < kPartSeeds) {
    FillWithPart(operation.data_seed - kFirstPartSeed, data);
    return data;
  }
  if (operation.data_seed >= kFirstVersionSeed && operation.data_seed < kVersionSeeds) {
    FillWithVersion(operation.data_seed - kFirstVersionSeed, data);
    return data;
  }
  switch (operation.data_seed % 5) {
    case 0:
      break;
    case 1: {
      Random few(operation.data_seed % 3);
      few.Fill(data);
      break;
    }
    case 2:
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<uint8_t>((i / 97) * operation.data_seed);
      break;
    case 3:
      FillWithLines(operation.data_seed, data);
      break;
    default:
      Random(operation.data_seed).Fill(data);
  }
  return data;
}

std::string XattrValue(uint64_t seed) {
  Bytes value(seed % 200);
  Random(seed).Fill(value);
  return std::string(AsText(value));
}

bool IsDefaultAcl(uint64_t seed) { return seed % 2 == 0; }

std::string AclValue(uint64_t seed) {
  const auto permissions = [&seed] {
    seed /= 8;
    return fmt::format("{}{}{}", seed & 4 ? "r" : "-", seed & 2 ? "w" : "-", seed & 1 ? "x" : "-");
  };
  const uint64_t named = seed % 3;
  std::string text = "u::" + permissions();
  for (uint64_t i = 1; i <= named; ++i) text += fmt::format(",u:{}:{}", i, permissions());
  text += ",g::" + permissions();
  if (named > 0) text += ",m::" + permissions();
  return AclFromText(text + ",o::" + permissions());
}

uint32_t NodeMode(uint64_t seed) {
  static constexpr uint32_t kTypes[] = {S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK};
  return kTypes[seed % std::size(kTypes)] | 0600;
}

uint64_t NodeDevice(uint64_t seed) {
  return S_ISCHR(NodeMode(seed)) || S_ISBLK(NodeMode(seed)) ? 1 + seed % 4000 : 0;
}

Transfer TransferOf(uint64_t seed) {
  static constexpr Transfer kTransfers[] = {
      Transfer::kOneWay,   Transfer::kOneWay,  Transfer::kOneWay,   Transfer::kTwoWay,
      Transfer::kTwoWay,   Transfer::kResumed, Transfer::kResumed,  Transfer::kResumed,
      Transfer::kOneWay,   Transfer::kTwoWay,  Transfer::kCutShort, Transfer::kCutShort,
      Transfer::kAbandoned};
  return kTransfers[seed % std::size(kTransfers)];
}

bool IsCutTwoWay(uint64_t seed) { return seed / 16 % 3 == 0; }

std::string SnapshotToClone(uint64_t seed) {
  static constexpr std::array kNames = {"s0", "s1", "s2", "s0", "s1", "s2",
                                        "r0", "r1", "r2", "r3", "c0", "k0"};
  return kNames[seed % kNames.size()];
}

}  // namespace siltfs::testing
