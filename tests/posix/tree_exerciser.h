// Exercises a tree: random operations of one of several processes in the same tree. Other processes
// make, move and remove entries at the same time, so errors caused by that are expected. Any other
// error (EIO, ESTALE, ENOSYS, ...) is a failure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::testing {

class UnexpectedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class TreeExerciser {
 public:
  TreeExerciser(std::string root, uint64_t seed);

  // Throws UnexpectedError.
  void Run(uint64_t operations);

  // Number of successful calls of each kind.
  const std::map<std::string_view, uint64_t>& successes() const { return successes_; }

 private:
  void Step();

  void Create();
  void Write();
  void Read();
  void Truncate();
  void CopyRange();
  void Rename();
  void Link();
  void Unlink();
  void MakeDirectory();
  void RemoveDirectory();
  void MakeSymlink();
  void SetXattr();
  void List();
  void Stat();

  std::string AnyPath();
  int OpenAny(std::string_view call, int flags);  // negative for an expected error
  Bytes Content();
  // Counts a success. An error must be one that races explain, or be in `also`.
  bool Judge(std::string_view call, const std::string& path, long result,
             const std::set<int>& also = {});

  const std::string root_;
  const uint64_t seed_;
  Random random_;
  uint64_t step_ = 0;
  std::map<std::string_view, uint64_t> successes_;
};

}  // namespace siltfs::testing
