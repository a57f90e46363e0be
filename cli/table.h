// Rows of text in columns that line up.
//
// Threads: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace kvkeep::cli {

enum class Align : uint8_t { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string_view name;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One text per column. `style` is that of the last one.
  void add(std::vector<std::string> row, Style style = Style::kPlain);
  // The names, then the rows. Stops when the console is closed.
  void print(Console& console) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  std::string text_of(const std::vector<std::string>& cells,
                      const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Characters, not bytes.
size_t width_of(std::string_view text);

}  // namespace kvkeep::cli
