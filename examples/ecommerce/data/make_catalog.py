"""Write the static product catalogue that purchases are joined with: 50 products in 5 categories."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CATEGORIES = ("books", "garden", "kitchen", "sports", "toys")


def main() -> None:
    """Write product_catalog/catalog.parquet next to this file."""
    numbers = range(1, 51)
    table = pa.table(
        {
            "product_id": [f"p{number:03}" for number in numbers],
            "name": [f"{CATEGORIES[number % 5]} item {number}" for number in numbers],
            "category": [CATEGORIES[number % 5] for number in numbers],
            "price": [round(5 + 3.5 * number, 2) for number in numbers],
        }
    )
    folder = Path(__file__).parent / "product_catalog"
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "catalog.parquet")


if __name__ == "__main__":
    main()
