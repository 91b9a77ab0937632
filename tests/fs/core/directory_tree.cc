#include "tests/fs/core/directory_tree.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"

namespace siltfs::testing {

namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  INFO(path);
  const std::optional<std::string> text = ReadTextOf(path);
  REQUIRE(text.has_value());
  return *text;
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  INFO(path);
  REQUIRE(out.good());
}

DirectoryTree ReadTree(const std::string& directory) {
  DirectoryTree tree;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = fs::relative(entry.path(), directory).string();
    if (entry.is_directory()) {
      tree[path + "/"];
    } else {
      tree[path] = ReadText(entry.path().string());
    }
  }
  return tree;
}

void WriteTree(const std::string& directory, const DirectoryTree& tree) {
  fs::remove_all(directory);
  fs::create_directories(directory);
  for (const auto& [path, content] : tree) {
    const std::string full = directory + "/" + path;
    if (path.back() == '/') {
      fs::create_directories(full);
    } else {
      WriteText(full, content);
    }
  }
}

}  // namespace siltfs::testing
