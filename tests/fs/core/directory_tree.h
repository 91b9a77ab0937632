// All files below a directory as one value. Tests use it to restore parts of a store, and to see
// whether a file has changed.
#pragma once

#include <map>
#include <string>

namespace siltfs::testing {

// From each path below the directory to the content of the file. The path of a directory ends in
// "/", and its content is empty.
using DirectoryTree = std::map<std::string, std::string>;

DirectoryTree ReadTree(const std::string& directory);
// Makes the directory hold exactly this tree.
void WriteTree(const std::string& directory, const DirectoryTree& tree);

std::string ReadText(const std::string& path);
void WriteText(const std::string& path, const std::string& text);

}  // namespace siltfs::testing
