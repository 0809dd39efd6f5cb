"""Two short tales to ask about."""

LAMP = """The Lamp

Chapter 1

Mira lit the lamp in the tower every evening. Her brother Joss rowed out to the reef.

The lamp burned whale oil, and a gallon of it cost three shillings in 1821.

Chapter 2

On the ninth of March a storm put the lamp out. The schooner Petrel struck the reef and sank.

Joss pulled eleven sailors from the water. The captain, a man named Orlov, was not among them.
"""

WELL = """The Well

The village of Ansty dug a well in 1790. It was forty feet deep, and the water tasted of iron.

When the well ran dry, the miller Tobias sold water by the bucket.
"""
