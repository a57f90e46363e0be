#include "cli/table.h"

#include <algorithm>

namespace kvkeep::cli {

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void Table::add(std::vector<std::string> row, Style style) {
  rows_.push_back({std::move(row), style});
}

// Everything but the last cell, which may be styled and needs no padding behind it.
std::string Table::text_of(const std::vector<std::string>& cells,
                           const std::vector<size_t>& widths) const {
  std::string text;
  for (size_t i = 0; i + 1 < cells.size(); ++i) {
    const std::string gap(widths[i] - width_of(cells[i]), ' ');
    text += columns_[i].align == Align::kRight ? gap + cells[i] : cells[i] + gap;
    text += "  ";
  }
  return text;
}

void Table::print(Console& console) const {
  std::vector<std::string> names;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    names.emplace_back(column.name);
    widths.push_back(width_of(column.name));
  }
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row.cells[i]));
    }
  }
  const bool last_right = columns_.back().align == Align::kRight;
  const auto last = [&](const std::string& cell) {
    return (last_right ? std::string(widths.back() - width_of(cell), ' ') : "") + cell;
  };
  console.line(console.styled(text_of(names, widths) + last(names.back()), Style::kBold));
  for (const Row& row : rows_) {
    if (console.is_closed()) return;
    console.line(text_of(row.cells, widths) + console.styled(last(row.cells.back()), row.style));
  }
}

}  // namespace kvkeep::cli
